"""The tallies of one partition, counted again from decisions and labels."""

from collections.abc import Iterator
from typing import Any

import msgspec

from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.core.messages.tallies import Tallies, Tally, zero
from mistakebound.settings import LabelValue


class Counts:
    """Counts for life and for the epoch."""

    def __init__(self, negative: LabelValue | None) -> None:
        """`negative`: the second of two classes, which always-the-majority predicts first."""
        self.life, self.epoch = zero(), zero()
        self.negative = negative

    def begin_epoch(self, negative: LabelValue | None) -> None:
        """The epoch's counts start at zero."""
        self.epoch, self.negative = zero(), negative

    def consumed(self, topic: str) -> None:
        """A record was taken from an input."""
        for tally in (self.life, self.epoch):
            (tally.labels if topic == "labels" else tally.examples)["consumed"] += 1

    def decided(self, decision: Decision) -> None:
        """Count an example's outcome, a label's, or with `applied` both."""
        for tally in (self.life, self.epoch):
            if decision.outcome == "applied":
                tally.examples["labelled"] += 1
                tally.labels["applied"] += 1
            elif decision.outcome != "parked":
                of = tally.examples if decision.label_offset is None else tally.labels
                of[decision.outcome] += 1

    def judged(self, label: LabelValue, *, mistaken: bool, of_epoch: bool, waiting: int) -> None:
        """A label was applied, late or not. `waiting`: its own example included; `of_epoch`: predicted in this epoch."""
        name = spelled(label)
        for tally in (self.life, self.epoch):
            tally.majority_mistakes += self._favourite(tally) != name
            tally.actual[name] = tally.actual.get(name, 0) + 1
            tally.mistakes += mistaken and (of_epoch or tally is self.life)
            tally.outstanding = max(tally.outstanding, waiting)

    def _favourite(self, tally: Tally) -> str | None:
        """The most frequent class so far; of equally frequent ones the negative one, or else the first by name."""
        negative = None if self.negative is None else spelled(self.negative)
        best = max(tally.actual.values(), default=0)
        tied = sorted(name for name, count in tally.actual.items() if count == best)
        return negative if negative in tied or not tied else tied[0]

    def updated(self) -> None:
        """One more update."""
        self.life.updates += 1
        self.epoch.updates += 1

    def differences(self, recorded: Tallies) -> dict[str, tuple[Any, Any]]:
        """Path -> (recorded, counted) where they differ."""
        mine = dict(_flat("", msgspec.to_builtins(Tallies(self.life, self.epoch))))
        theirs = dict(_flat("", msgspec.to_builtins(recorded)))
        return {
            path: (theirs.get(path), mine.get(path))
            for path in sorted({*mine, *theirs})
            if theirs.get(path) != mine.get(path)
        }


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value
