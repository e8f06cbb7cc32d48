"""What growth costs: CPU of the core step and memory, as known features, waiting examples and updates grow.

    python -m tests.benchmarks.growth [--sizes 10000,100000,1000000] [--rounds 15] [--learner perceptron]

No broker. A process holds each size; they alternate with chunks of 4,000 examples and their labels, ten
named features each: once drawn evenly from all that are known, which is the worst case for the processor's
caches, and once skewed, each with probability 1/rank, as words are. Takes about five minutes.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

from tests.benchmarks.memory import most_waiting_bytes
from tests.benchmarks.throughput import ROOT, ratios

MIB = 1024 * 1024
TIMED = ("features", "features, skewed", "waiting")
KINDS = {
    "features": "known feature",
    "features, skewed": "known feature",
    "waiting": "waiting example",
    "updates": "update (of features known already)",
}
MOST_LOSS = 0.1


@dataclass
class Measured:
    """Of one process."""

    resident: int
    record_bytes: float
    us: list[float] = field(default_factory=list)
    """CPU of a labelled example, round by round."""
    bare_us: list[float] = field(default_factory=list)
    """CPU of its w.x with the weights in a plain dict."""
    updates: list[float] = field(default_factory=list)
    """Per labelled example."""


def main() -> None:
    """Measure, and print the tables."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--sizes", default="10000,100000,1000000")
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--learner", default="perceptron")
    given = asked.parse_args()
    sizes = sorted(int(each) for each in given.sizes.split(","))
    for kind in KINDS:
        found = _measure(kind, sizes, given.rounds if kind in TIMED else 0, given.learner)
        print(f"{_table(kind, found)}\n\n{_memory(kind, found)}")
        if kind in TIMED and given.rounds:
            print(_loss(found))
        print(flush=True)


def _measure(kind: str, sizes: Sequence[int], rounds: int, learner: str) -> dict[int, Measured]:
    found: dict[int, Measured] = {}
    with ExitStack() as held:
        children = {}
        for size in sizes:
            children[size] = held.enter_context(_start({"kind": kind, "size": size, "learner": learner}))
            filled = _answer(children[size])
            found[size] = Measured(filled["resident"], filled["record"])
        for number in range(rounds + 1):
            turn = number % len(sizes)
            for size in (*sizes[turn:], *sizes[:turn]):
                child = children[size]
                _pipe(child.stdin).write("\n")
                _pipe(child.stdin).flush()
                answer = _answer(child)
                if number:  # the first round only warms up
                    for name, values in vars(found[size]).items():
                        if name in answer:
                            values.append(answer[name])
        for child in children.values():
            _pipe(child.stdin).close()
    return found


def _start(task: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.benchmarks.contenders.grown", json.dumps(task)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    line = _pipe(child.stdout).readline()
    if not line:
        raise RuntimeError(f"process {child.pid} ended with {child.wait()}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _table(kind: str, found: dict[int, Measured]) -> str:
    least = found[min(found)]
    lines = [
        f"| {kind} | resident MiB | CPU us/labelled example | spread | throughput, times that of the first "
        "| spread | updates/example | w.x in a plain dict, us |",
        "|---" * 8 + "|",
    ]
    for size, each in found.items():
        cells = [f"{size:,}", f"{each.resident / MIB:.0f}"]
        if each.us:
            kept = ratios(least.us, each.us)
            cells += [f"{statistics.median(each.us):.1f}", f"{min(each.us):.1f} to {max(each.us):.1f}"]
            cells += [f"{statistics.median(kept):.3f}", f"{min(kept):.3f} to {max(kept):.3f}"]
            cells += [f"{statistics.mean(each.updates):.2f}", f"{statistics.median(each.bare_us):.1f}"]
        else:
            cells += [""] * 6
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _memory(kind: str, found: dict[int, Measured]) -> str:
    """The fitted slope, and how far from the line any size is."""
    if len(found) < 2:
        return "memory: one size has no slope"
    sizes, resident = list(found), [each.resident for each in found.values()]
    slope, start = statistics.linear_regression(sizes, resident)
    off = max(abs(start + slope * size - each) for size, each in zip(sizes, resident, strict=True))
    text = f"memory: {slope:.1f} bytes per {KINDS[kind]}, at most {off / MIB:.1f} MiB off the line"
    if kind == "waiting":
        record = found[max(sizes)].record_bytes
        text += f"; its record has {record:.0f} bytes, goal: at most {most_waiting_bytes(record):.0f}"
    return text


def _loss(found: dict[int, Measured]) -> str:
    """Of throughput, from the least to the most."""
    least, most = min(found), max(found)
    bare = [2 * statistics.median(found[size].bare_us) for size in (least, most)]
    lost = [1 - kept for kept in ratios(found[least].us, found[most].us)]
    return (
        f"throughput lost from {least:,} to {most:,}: {statistics.median(lost):.1%} "
        f"({min(lost):.1%} to {max(lost):.1%}), goal: below {MOST_LOSS:.0%}; two passes over a plain dict "
        f"take {bare[1] - bare[0]:+.1f} us"
    )


if __name__ == "__main__":
    main()
