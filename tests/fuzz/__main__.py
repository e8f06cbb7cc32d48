"""Fuzz for a while: `python -m tests.fuzz --minutes 10 [--seed N] [TARGET ...]`.

Each case has a number, from which it can be made again: `--seed N --cases 1 TARGET`. Ends with exit code 1
at finds, which are printed with their numbers. Memory is bounded: a case that needs more is a find.
"""

import argparse
import contextlib
import resource
import secrets
import signal
import sys
import time
import traceback
from collections import Counter
from random import Random
from types import FrameType

from tests.fuzz.targets import TARGETS, Requests, Target, listening

CASE_S = 20
MEMORY_BYTES = 3 * 2**30
GROWTH_BYTES = 200 * 2**20
"""More than that for one case is a find."""
ALIKE = 3
"""Finds of one kind that are printed."""


def main() -> int:
    """Exit code 0 where nothing was found."""
    reader = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    reader.add_argument("--minutes", type=float, default=1.0)
    reader.add_argument("--seed", type=int, default=secrets.randbelow(2**40))
    reader.add_argument("--cases", type=int, default=2**40, help="of each target at most")
    reader.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}, http")
    asked = reader.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    with listening() as server:
        targets: dict[str, Target] = TARGETS | {"http": Requests(server)}
        chosen = {name: targets[name] for name in asked.targets or targets}
        return run(chosen, asked.minutes * 60, asked.seed, asked.cases)


def run(targets: dict[str, Target], seconds: float, seed: int, cases: int) -> int:
    """Give each target as much time; its cases are numbered from the seed on."""
    end = time.monotonic() + seconds
    spent = dict.fromkeys(targets, 0.0)
    done: Counter[str] = Counter()
    found: Counter[str] = Counter()
    peak = _peak_bytes()
    print(f"seed {seed}, {', '.join(targets)}", flush=True)
    while (began := time.monotonic()) < end and spent:
        name = min(spent, key=lambda each: spent[each])
        number = seed + done[name]
        signal.alarm(CASE_S)
        try:
            targets[name](Random(number))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a find
            kind = f"{name}: {type(error).__name__} at {_where(error)}"
            found[kind] += 1
            if found[kind] <= ALIKE:
                print(f"FOUND {kind}, case {number}\n{traceback.format_exc()}", flush=True)
        finally:
            signal.alarm(0)
        if _peak_bytes() > peak + GROWTH_BYTES:
            peak = _peak_bytes()
            found[f"{name}: memory"] += 1
            print(f"FOUND {name}: {peak / 2**20:.0f} MB taken, case {number}", flush=True)
        done[name] += 1
        spent[name] += time.monotonic() - began
        if done[name] == cases:
            del spent[name]
    print(f"cases: {dict(done)}; {_peak_bytes() / 2**20:.0f} MB at most; found: {dict(found) or 'nothing'}")
    return 1 if found else 0


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/mistakebound/" in frame.filename] or frames[-1:]
    return f"{ours[-1].filename.rpartition('/mistakebound/')[2]}:{ours[-1].lineno}"


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"a case took longer than {CASE_S} s")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
