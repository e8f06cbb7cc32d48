"""The tallies of one partition, counted again from decisions and labels."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from mistakebound.core.audit.confusions import Confusions
from mistakebound.core.audit.findings import Findings
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.core.messages.tallies import (
    TENANT_LINES,
    TENANT_NAMES_BYTES,
    Tallies,
    Tally,
    TenantTally,
    zero,
)
from mistakebound.settings import LabelValue


class Counts:
    """Counts for life and for the epoch."""

    def __init__(self, classes: Sequence[LabelValue]) -> None:
        """`classes` as declared; empty where they are open."""
        self.life, self.epoch = zero(), zero()
        self._classes = classes
        self._of_life: Confusions | None = None
        self._of_epoch: Confusions | None = None
        self._last_label: str | UnsetType = UNSET
        self._tenants: dict[str, TenantTally] = {}
        self._others: TenantTally | None = None

    def begin_epoch(self, classes: Sequence[LabelValue]) -> None:
        """The epoch's counts start at zero."""
        self.epoch, self._classes, self._of_epoch = zero(), classes, None

    def begin_step(self) -> None:
        """A partition step begins: from the first one on, its decisions count in every way."""
        self._of_life, self._of_epoch = self._of_life or Confusions(), self._of_epoch or Confusions()

    def end_step(self, recorded: Tallies, findings: Findings) -> None:
        """An earlier version wrote no counts by (actual, predicted): they start at zero behind it."""
        if (recorded.life.confusion, recorded.epoch.confusion, recorded.last_label) == (UNSET, UNSET, UNSET):
            self._of_life = self._of_epoch = None
            self._last_label = UNSET
            findings.note("steps of an earlier version, which did not count by (actual, predicted)")

    @property
    def _first(self) -> str | None:
        """Of two classes the negative one, which is predicted before there is a label."""
        return spelled(self._classes[1]) if len(self._classes) == 2 else None

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
            if decision.weight is not None:
                self._ended(tally, decision, decision.weight)

    def _ended(self, tally: Tally, decision: Decision, weight: int) -> None:
        """An example with a weight was labelled, or given up."""
        asked = tally.of_asked()
        came, way = decision.outcome == "applied", "" if weight else "unasked_"
        name = way + ("labelled" if came else "missing")
        setattr(asked, name, getattr(asked, name) + 1)
        if came and weight and decision.prediction != decision.label:
            asked.mistakes += 1
            asked.estimate = min(2**63 - 1, asked.estimate + weight)

    def measured(self, length: float) -> None:
        """A labelled example's length, while labels are asked for."""
        for tally in (self.life, self.epoch):
            tally.of_asked().measure(length)

    def judged(
        self, label: LabelValue, predicted: LabelValue | None, *, of_epoch: bool, waiting: int
    ) -> None:
        """A label was applied, late or not. `waiting`: its own example included; `of_epoch`: predicted in this epoch."""
        name, said = spelled(label), None if predicted is None else spelled(predicted)
        before = self._first if self._last_label is UNSET else self._last_label
        for tally, confusions in ((self.life, self._of_life), (self.epoch, self._of_epoch)):
            favourite = self._favourite(tally)
            if of_epoch or tally is self.life:
                tally.mistakes += predicted != label
                assert confusions is not None
                confusions.judged(name, said, favourite, before, classes_open=not self._classes)
            tally.majority_mistakes += favourite != name
            tally.actual[name] = tally.actual.get(name, 0) + 1
            tally.outstanding = max(tally.outstanding, waiting)
        self._last_label = name

    def of_tenant(
        self,
        tenant: str | None,
        *,
        predicted: int = 0,
        labelled: int = 0,
        mistakes: int = 0,
        updates: int = 0,
    ) -> None:
        """Count for a tenant; the first ones have lines of their own, as many as fit, the rest one together."""
        if tenant is None:
            return
        one = TenantTally(predicted, labelled, mistakes, updates)
        if tenant in self._tenants:
            self._tenants[tenant].add(one)
        elif len(self._tenants) < TENANT_LINES and self._name_bytes(tenant) <= TENANT_NAMES_BYTES:
            self._tenants[tenant] = one
        elif self._others is None:
            self._others = one
        else:
            self._others.add(one)

    def _name_bytes(self, more: str) -> int:
        return len(msgspec.json.encode([*self._tenants, more])) - 1

    def at_label(self, *, mistaken: bool, of_epoch: bool) -> None:
        """What the model said of the example just judged, before it learned from the label."""
        for confusions, counts in ((self._of_life, True), (self._of_epoch, of_epoch)):
            assert confusions is not None
            confusions.mistakes_at_label += mistaken and counts

    def _favourite(self, tally: Tally) -> str | None:
        """The most frequent class so far; of equally frequent ones the negative one, or else the first by name."""
        negative = self._first
        best = max(tally.actual.values(), default=0)
        tied = sorted(name for name, count in tally.actual.items() if count == best)
        return negative if negative in tied or not tied else tied[0]

    def updated(self) -> None:
        """One more update."""
        self.life.updates += 1
        self.epoch.updates += 1

    def differences(self, recorded: Tallies) -> dict[str, tuple[Any, Any]]:
        """Path -> (recorded, counted) where they differ."""
        for tally, confusions in ((self.life, self._of_life), (self.epoch, self._of_epoch)):
            tally.confusion = UNSET if confusions is None else confusions.made()
        counted = Tallies(self.life, self.epoch, self._last_label, self._tenants, self._others)
        mine = dict(_flat("", msgspec.to_builtins(counted)))
        theirs = dict(_flat("", msgspec.to_builtins(recorded)))
        return {
            path: (theirs.get(path), mine.get(path))
            for path in sorted({*mine, *theirs})
            if theirs.get(path) != mine.get(path)
        }


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value
