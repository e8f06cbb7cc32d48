"""`python -m tests.simulate`: many seeds, one after another or on several processors; see the package."""

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests import simulate
from tests.simulate.fleet import Simulation

TOLD = 60
"""Last lines of a failing run's story."""


def tried(seed: int, workers: int | None) -> tuple[int, str | None, list[str]]:
    """The seed, what failed, and the story."""
    run = Simulation(seed, workers)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the seed found
        text = "".join(traceback.format_exception(error))
        return seed, text, run.scheduler.told[-TOLD:]
    return seed, None, []


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulate",
        description=simulate.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--most", type=int, default=3, help="failures after which to stop")
    asked = parser.parse_args()
    began, failures, done = time.monotonic(), 0, 0
    seeds = range(asked.first, asked.first + asked.seeds)
    with ProcessPoolExecutor(asked.processes) as pool:
        for seed, failed, told in pool.map(tried, seeds, [asked.workers] * len(seeds), chunksize=5):
            done += 1
            if failed is not None:
                failures += 1
                print("\n".join(told))
                print(f"seed {seed}: {failed}", flush=True)
                if failures >= asked.most:
                    pool.shutdown(cancel_futures=True)
                    break
    print(f"{done} seeds, {failures} failed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
