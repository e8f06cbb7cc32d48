"""The fleet in one seed: what every seed must keep, and that the simulation sees what it is there for."""

from collections.abc import Collection

import pytest

from tests.simulate import __main__ as command
from tests.simulate.fleet import Simulation
from tests.simulate.seeds import Asked, failed, tried
from tests.simulate.trials import TRIALS

CHUNKS, QUICK, LONG = 8, 3, 40
"""Chunks of seeds, and seeds in each without and with `--long`."""
TRAPPED: dict[str, tuple[int, Collection[str]]] = {
    "late-copies": (17, ("bad line",)),
    "paused-partitions": (24, ()),
    "uncommitted": (1, ("pause", "kill")),
    "unfenced": (4, ("pause", "evict")),
    "lost-epoch": (1, ("double",)),
    "failed-sends": (0, ("disk full",)),
    "unanswered-commits": (207, ("silence", "broker stalls")),
}
"""A seed by which each open trap was found, and the faults that it takes. After a change to the code the same seed runs
another story, so the test looks on from there."""
MOST_LOOKED_AT = 150


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_fleet_keeps_every_promise(chunk: int, request: pytest.FixtureRequest) -> None:
    """Whatever is killed, paused, cut off or delayed: audit and recount agree, and all is worked off in bounded time."""
    count = LONG if request.config.getoption("--long") else QUICK
    for seed in range(chunk * LONG, chunk * LONG + count):
        story = failed(seed)

        assert story is None, story


@pytest.mark.parametrize("name", TRIALS)
def test_a_fleet_is_well_after_every_trial(name: str) -> None:
    """Whatever the seed had drawn, with two workers."""
    run = Simulation(11, workers=2, faults=())
    run.trial.name, run.disaster.name = name, ""

    run.run()

    assert any(f"trial: {name}" in line for line in run.scheduler.told)


def test_a_seed_repeats_its_run() -> None:
    """To the bit: the same story at the same times, and the same records."""
    runs = [Simulation(7), Simulation(7)]
    for each in runs:
        each.run()

    first, second = runs
    assert first.scheduler.told == second.scheduler.told
    assert first.broker.logs == second.broker.logs
    assert first.scheduler.now_s == second.scheduler.now_s


def test_many_seeds_go_on_in_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the processes take before they end: each seed has its answer, in the order of the seeds."""
    monkeypatch.setattr(command, "PER_PROCESS", 2)

    found = list(command.in_turn(str, range(3, 14), processes=2))

    assert found == [str(seed) for seed in range(3, 14)]


@pytest.mark.parametrize("trap", TRAPPED)
def test_an_open_trap_of_the_clients_is_found(trap: str) -> None:
    """With it open some run soon fails, and with it closed the same seed passes."""
    first, faults = TRAPPED[trap]
    seeds = range(first, first + MOST_LOOKED_AT)

    found = next((seed for seed in seeds if tried(seed, Asked(trap=trap, faults=faults))[0]), None)

    assert found is not None
    assert tried(found, Asked(faults=faults))[0] is None
