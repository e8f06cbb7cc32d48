"""Recent counts, in buckets that get coarser with age: bounded, and empty when the process starts.

Three rings of buckets: 2 s for the last ten minutes, a minute for three hours, ten minutes for two days. Each
ring sees every count, so none is derived from another. A bucket in which nothing happened is left out.
"""

from collections import deque
from operator import add

from mistakebound.core.reporting.status import History
from mistakebound.core.step.facts import StepFacts

RINGS = ((2, 300), (60, 180), (600, 288))
"""(seconds of a bucket, buckets kept)."""

Counts = tuple[int, ...]
"""Examples predicted, labelled, mistakes, majority's mistakes, updates."""


class _Ring:
    def __init__(self, seconds: int, kept: int) -> None:
        self.seconds = seconds
        self._span = seconds * kept
        self._buckets: deque[tuple[int, Counts]] = deque(maxlen=kept)

    def add(self, at_s: float, counts: Counts) -> None:
        start = int(at_s // self.seconds) * self.seconds
        if self._buckets and self._buckets[-1][0] >= start:  # the wall clock may have been set back
            last, known = self._buckets.pop()
            start, counts = last, tuple(map(add, known, counts))
        self._buckets.append((start, counts))

    def history(self, now_s: float) -> History:
        while self._buckets and self._buckets[0][0] + self._span <= now_s:
            self._buckets.popleft()
        columns = zip(*(counts for _, counts in self._buckets), strict=True) if self._buckets else ((),) * 5
        return History(self.seconds, tuple(start for start, _ in self._buckets), *columns)


class RecentHistory:
    """The three rings, written and read by one thread; the histories it returns are never changed."""

    def __init__(self) -> None:
        self._rings = [_Ring(seconds, kept) for seconds, kept in RINGS]

    def add(self, at_s: float, facts: StepFacts) -> None:
        """A step was committed at this Unix time."""
        counts = (
            len(facts.margins),  # one for each prediction, those of no known class too
            facts.labels.get("applied", 0) + facts.labels.get("applied_late", 0),
            sum(facts.mistakes.values()),
            facts.baseline_mistakes,
            sum(facts.updates.values()),
        )
        if any(counts):
            for ring in self._rings:
                ring.add(at_s, counts)

    def histories(self, now_s: float) -> tuple[History, ...]:
        """All rings, finest first."""
        return tuple(ring.history(now_s) for ring in self._rings)


def since(history: History, at_s: float) -> tuple[int, int, int]:
    """(examples, labelled, mistakes) of the buckets that began at or after this Unix time."""
    first = next((index for index, at in enumerate(history.at) if at >= at_s), len(history.at))
    return sum(history.examples[first:]), sum(history.labelled[first:]), sum(history.mistakes[first:])
