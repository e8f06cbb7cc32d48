"""`python -m tests.simulate`: many seeds, on several processors; see the package."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests import simulate
from tests.simulate.sabotage import sabotage
from tests.simulate.seeds import TRAPS, Asked, failed, fails
from tests.simulate.strikes import FAULTS

PER_PROCESS = 250
EVERY = 500
"""Seeds between two lines of progress."""


def in_turn(run: Callable[[int], str | None], seeds: range, processes: int) -> Iterator[str | None]:
    """What `run` says of each seed, in their order.

    A run's tasks keep each other alive, so the processes end after some runs. They end all at once: a pool
    that replaces them one by one (`max_tasks_per_child`) now and then waits for ever on Python 3.11.
    """
    for first in range(0, len(seeds), processes * PER_PROCESS):
        with ProcessPoolExecutor(processes) as pool:
            try:
                yield from pool.map(run, seeds[first : first + processes * PER_PROCESS])
            finally:
                pool.shutdown(cancel_futures=True)


def main() -> int:
    """Run what was asked for; 1 where a seed failed, or where none did that should."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulate",
        description=simulate.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--workers", type=int, choices=(1, 2, 3, 4))
    parser.add_argument("--trap", choices=TRAPS, help="open one of the clients' traps: a seed should find it")
    parser.add_argument("--without", nargs="+", choices=FAULTS, default=(), help="no faults of these kinds")
    parser.add_argument(
        "--only", nargs="+", choices=FAULTS, default=FAULTS, help="faults of these kinds alone"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=3, help="failures after which to stop")
    parser.add_argument("--briefly", action="store_true", help="tell a failure in one line, as it was found")
    parser.add_argument(
        "--sabotage", nargs="*", metavar="NAME",
        help="remove one guard after the other (all, or by whole name or first word), and count the seeds until one fails",
    )  # fmt: skip
    asked = parser.parse_args()
    faults = tuple(each for each in asked.only if each not in asked.without)
    if asked.sabotage is not None:
        return sabotage(asked.sabotage, asked.seeds, asked.processes, faults)
    began, failures, done = time.monotonic(), 0, 0
    seeds = range(asked.first, asked.first + asked.seeds)
    run = partial(fails if asked.briefly else failed, asked=Asked(asked.workers, asked.trap, faults))
    for story in in_turn(run, seeds, asked.processes):
        done += 1
        if story is not None:
            failures += 1
            print(story, flush=True)
            if failures >= asked.most:
                break
        if done % EVERY == 0:
            print(f"{done} seeds, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{done} seeds, {failures} failed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
