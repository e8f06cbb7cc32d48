"""Predictions that the partition steps count: a rebuild compares their number with what it finds, as it reads both anyway.

Fewer mean that a transaction was torn: its outcomes are in the log, its predictions were aborted.
"""

from collections.abc import Iterable

from mistakebound.core.messages.schema import Decision, Outcomes

UNPREDICTED = ("invalid", "duplicate")
"""What an example comes to that gets no prediction."""


class Counted:
    """The predictions of those steps, from `first` on, that lie wholly in what is read."""

    def __init__(self, source: int, start: int | None) -> None:
        """`source`: every prediction of an example from there on is read. `start`: where the first step begins, if known."""
        self._source, self._start = source, start
        self.first = self.end = 0
        """The examples of these steps: from `first` to before `end`."""
        self._predictions = 0
        self._last = 0
        self._last_start = 0

    def step(self, last: Outcomes, parts: Iterable[Outcomes]) -> None:
        """The next partition step; `last` is the last of its parts."""
        assert last.inputs is not None
        self._last = sum((last.order or [])[0::2])
        for part in parts:
            for each in part.decisions:
                if each.label_offset is None and is_unpredicted(each):  # nearly all are of labels
                    self._last -= 1
        self._last_start = self._start or 0
        if self._start is not None and self._start >= self._source:
            if not self._predictions:
                self.first = self._start
            self._predictions += self._last
        self._start = self.end = last.inputs.examples

    def close(self) -> None:
        """There are no more steps. The last one's predictions are read even where earlier examples of it are decided."""
        if not self._predictions:
            self.first, self._predictions = self._last_start, self._last

    def missing(self, found: int) -> int:
        """How many of them are not among the `found` predictions of the examples from `first` to before `end`."""
        return max(0, self._predictions - found)


def is_unpredicted(decision: Decision) -> bool:
    """Whether it says of an example that it gets no prediction."""
    return decision.label_offset is None and decision.source is not None and decision.outcome in UNPREDICTED
