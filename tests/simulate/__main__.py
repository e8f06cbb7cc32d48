"""`python -m tests.simulate`: many seeds, on several processors; see the package."""

import argparse
import sys
import time
import traceback
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests import simulate
from tests.simulate.client import Client
from tests.simulate.fleet import Simulation

TOLD = 60
"""Last lines of a failing run's story."""
PER_PROCESS = 250
EVERY = 500
"""Seeds between two lines of progress."""
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


def main() -> int:
    """Run what was asked for; 1 where a seed failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulate",
        description=simulate.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--workers", type=int, choices=(1, 2, 3, 4))
    parser.add_argument("--trap", choices=TRAPS, help="open one of the clients' traps: a seed should find it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=3, help="failures after which to stop")
    asked = parser.parse_args()
    began, failures, done = time.monotonic(), 0, 0
    seeds = range(asked.first, asked.first + asked.seeds)
    # A run's tasks keep each other alive, so a process ends after some runs.
    with ProcessPoolExecutor(asked.processes, max_tasks_per_child=PER_PROCESS) as pool:
        run = partial(failed, workers=asked.workers, trap=asked.trap)
        for story in pool.map(run, seeds):
            done += 1
            if story is not None:
                failures += 1
                print(story, flush=True)
                if failures >= asked.most:
                    pool.shutdown(cancel_futures=True)
                    break
            if done % EVERY == 0:
                print(f"{done} seeds, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{done} seeds, {failures} failed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
