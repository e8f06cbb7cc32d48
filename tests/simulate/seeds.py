"""One seed after another: what failed, and the story of it with as few faults and records as it takes."""

import traceback
from collections.abc import Collection
from typing import NamedTuple

from tests.simulate.client import Client
from tests.simulate.fleet import Simulation
from tests.simulate.strikes import FAULTS

TOLD = 60
"""Last lines of a failing run's story."""
TRAPS = {
    "late-copies": Client(asks_again=True, tells=False),
    "paused-partitions": Client(delivers_paused=True, most_records=100),
    "uncommitted": Client(reads_uncommitted=True),
    "unfenced": Client(fences=False),
    "lost-epoch": Client(asks_again=True, knows_its_epoch=False),
    "failed-sends": Client(waits_for_sends=False),
    "unanswered-commits": Client(waits_for_commits=False),
}
"""Ways in which a client would tear steps. The real ones have them closed."""


class Asked(NamedTuple):
    """How a seed is run."""

    workers: int | None = None
    trap: str | None = None
    faults: Collection[str] = FAULTS


AS_IT_IS = Asked()


def tried(
    seed: int, asked: Asked = AS_IT_IS, only: Collection[int] | None = None, most_records: int | None = None
) -> tuple[str | None, Simulation]:
    """What failed, if anything, and the run."""
    client = TRAPS[asked.trap] if asked.trap else None
    run = Simulation(seed, asked.workers, client, only, most_records, asked.faults)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the seed found
        return "".join(traceback.format_exception(error)), run
    return None, run


def fails(seed: int, asked: Asked = AS_IT_IS) -> str | None:
    """What failed, in a line; None if nothing did."""
    text, _ = tried(seed, asked)
    return text and f"seed {seed}: {text.strip().rpartition(chr(10))[2]}"


def failed(seed: int, asked: Asked = AS_IT_IS) -> str | None:
    """The story of a run that failed, with as few faults and records as it takes; None if it did not fail."""
    text, run = tried(seed, asked)
    if text is None:
        return None
    strikes: list[int] = list(range(len(run.strikes)))
    for number in list(strikes):
        fewer = [each for each in strikes if each != number]
        if tried(seed, asked, fewer)[0] is not None:
            strikes = fewer
    records = len(run.records)
    while records > 10 and tried(seed, asked, strikes, records * 3 // 4)[0] is not None:
        records = records * 3 // 4
    text, run = tried(seed, asked, strikes, records)
    assert text is not None, "the same run ends in the same way"
    told = "\n".join(run.scheduler.told[-TOLD:])
    return f"{told}\nseed {seed}, strikes {strikes}, {records} records: {text}"
