"""The fleet in one seed: what every seed must keep, and that the simulation sees what it is there for."""

from collections.abc import Collection

import pytest

from tests.simulate.fleet import Simulation
from tests.simulate.seeds import Asked, failed, tried

CHUNKS, QUICK, LONG = 8, 3, 40
"""Chunks of seeds, and seeds in each without and with `--long`."""
TRAPPED: dict[str, tuple[int, Collection[str]]] = {
    "late-copies": (20, ("bad line",)),
    "paused-partitions": (15, ()),
    "uncommitted": (1, ("pause", "kill")),
    "unfenced": (24, ("pause", "evict")),
    "lost-epoch": (30, ("double",)),
    "failed-sends": (1, ("disk full",)),
    "unanswered-commits": (62, ("silence", "broker stalls")),
}
"""A seed by which each open trap is found, so that the test need not look for one, and the faults that it takes."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_fleet_keeps_every_promise(chunk: int, request: pytest.FixtureRequest) -> None:
    """Whatever is killed, paused, cut off or delayed: audit and recount agree, and all is worked off in bounded time."""
    count = LONG if request.config.getoption("--long") else QUICK
    for seed in range(chunk * LONG, chunk * LONG + count):
        story = failed(seed)

        assert story is None, story


def test_a_seed_repeats_its_run() -> None:
    """To the bit: the same story at the same times, and the same records."""
    runs = [Simulation(7), Simulation(7)]
    for each in runs:
        each.run()

    first, second = runs
    assert first.scheduler.told == second.scheduler.told
    assert first.broker.logs == second.broker.logs
    assert first.scheduler.now_s == second.scheduler.now_s


@pytest.mark.parametrize("trap", TRAPPED)
def test_an_open_trap_of_the_clients_is_found(trap: str) -> None:
    """With it open the run fails, and with it closed the same seed passes."""
    seed, faults = TRAPPED[trap]

    assert tried(seed, Asked(trap=trap, faults=faults))[0] is not None
    assert tried(seed, Asked(faults=faults))[0] is None
