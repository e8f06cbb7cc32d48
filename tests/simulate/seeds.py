"""One seed after another: what failed, and the story of it with as few faults and records as it takes."""

import traceback
from collections.abc import Collection

from tests.simulate.client import Client
from tests.simulate.fleet import Simulation

TOLD = 60
"""Last lines of a failing run's story."""
TRAPS = {
    "late-copies": Client(asks_again=True, tells=False),
    "paused-partitions": Client(delivers_paused=True, most_records=100),
}


def tried(
    seed: int,
    workers: int | None,
    trap: str | None,
    only: Collection[int] | None = None,
    most_records: int | None = None,
) -> tuple[str | None, Simulation]:
    """What failed, if anything, and the run."""
    run = Simulation(seed, workers, TRAPS[trap] if trap else None, only, most_records)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the seed found
        return "".join(traceback.format_exception(error)), run
    return None, run


def failed(seed: int, workers: int | None, trap: str | None) -> str | None:
    """The story of a run that failed, with as few faults and records as it takes; None if it did not fail."""
    text, run = tried(seed, workers, trap)
    if text is None:
        return None
    strikes: list[int] = list(range(len(run.strikes)))
    for number in list(strikes):
        fewer = [each for each in strikes if each != number]
        if tried(seed, workers, trap, fewer)[0] is not None:
            strikes = fewer
    records = len(run.records)
    while records > 10 and tried(seed, workers, trap, strikes, records * 3 // 4)[0] is not None:
        records = records * 3 // 4
    text, run = tried(seed, workers, trap, strikes, records)
    assert text is not None, "the same run ends in the same way"
    told = "\n".join(run.scheduler.told[-TOLD:])
    return f"{told}\nseed {seed}, strikes {strikes}, {records} records: {text}"
