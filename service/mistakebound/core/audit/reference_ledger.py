"""What became of every id of one partition, by the rules of label outcomes, written a second time.

For each record: stream time advances, examples that waited too long expire in offset order, labels parked
too long become unmatched or are applied late, the record is handled, and the oldest beyond `labels.max_waiting` are
evicted. Resolved ids are remembered first-in first-out. An auditor that used the worker's ledger would repeat its
mistakes, so nothing is shared with it.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from math import inf
from typing import Literal, NamedTuple

from msgspec import Raw

from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.labels import Carried, spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.settings import LabelSettings, LabelValue


class Waiting(NamedTuple):
    """A predicted example that waits for its label."""

    id: str
    source: int
    at: int
    predicted: LabelValue | None
    epoch: int
    features: bytes
    updates: int
    """How many updates the predicting model had folded."""
    prediction_offset: int
    outcome_offset: int
    """First `outcomes` record of the partition step that predicted it."""
    beside: Beside | None = None
    """What its prediction says beside its class."""
    tenant: str | None = None
    again_at: int | None = None
    """When its prediction was made again: it waits from then on, unless it was decided before."""


class Parked(NamedTuple):
    """A label that waits for its example."""

    id: str
    offset: int
    label: LabelValue
    at: int
    outcome_offset: int
    carried: Carried | None
    """What the label record itself says of its example."""


class Remembered(NamedTuple):
    """A resolved id that is remembered; `label` None: given up without one."""

    label: LabelValue | None
    outcome_offset: int


class ReferenceLedger:
    """The ids of one partition. `here`: offset of the `outcomes` record of the decision being made."""

    def __init__(self, rules: LabelSettings, most_remembered: int = 0) -> None:
        """`most_remembered`: the largest `labels.remember` of any epoch."""
        self.waiting: OrderedDict[str, Waiting] = OrderedDict()
        self.made_again: set[int] = set()
        """Examples whose first prediction is gone, and what it said beside its class."""
        self.parked: OrderedDict[str, Parked] = OrderedDict()
        self.parked_classes: Counter[str] = Counter()
        """Parked labels by class, as tallies spell it."""
        self.remembered: OrderedDict[str, Remembered] = OrderedDict()
        self.forgotten: OrderedDict[str, Remembered] = OrderedDict()
        """Ids that a larger limit would still remember: an earlier version may have (`brought_back`)."""
        self._most_remembered = most_remembered
        self.now = 0
        """Stream time in ms."""
        self.here = 0
        self.newest_source = -1
        """Offset of the newest example consumed."""
        self.newest_label = -1
        """Offset of the newest label consumed."""
        self.rule(rules)

    def rule(self, rules: LabelSettings) -> None:
        """From now on these rules count: at the beginning, and when an epoch begins."""
        self._rules = rules
        self._longest_wait = inf if rules.max_delay is None else round(rules.max_delay.total_seconds() * 1000)
        self._longest_parked = round(rules.parking.total_seconds() * 1000)
        self._forget()

    def advance(self, timestamp_ms: int) -> None:
        """Take a record's time; a record without one has a negative one."""
        self.now = max(self.now, timestamp_ms)

    def next_due(self) -> Decision | None:
        """What time ends next: an example's waiting, or else a label's parking."""
        waiting = next(iter(self.waiting.values()), None)
        if waiting is not None and self.now - self._waits_since(waiting) > self._longest_wait:
            return self._give_up(waiting, "expired")
        parked = next(iter(self.parked.values()), None)
        if parked is not None and self.now - parked.at > self._longest_parked:
            return self._unmatched(parked)
        return None

    def _waits_since(self, entry: Waiting) -> int:
        again = entry.again_at
        return entry.at if again is None or self.now <= again else again

    def next_surplus(self) -> Decision | None:
        """Evict the oldest example if more wait than may."""
        if len(self.waiting) <= self._rules.max_waiting:
            return None
        return self._give_up(next(iter(self.waiting.values())), "evicted")

    def is_known(self, record_id: str) -> bool:
        """Whether an example of this id would be the second."""
        return record_id in self.waiting or record_id in self.remembered

    def label(
        self, record_id: str, offset: int, label: LabelValue, carried: Carried | None
    ) -> Decision | None:
        """What becomes of a label; None: it is applied to the waiting example."""
        if record_id in self.waiting:
            return None
        if record_id in self.remembered:
            return _decided(self.remembered[record_id].label, record_id, offset, label, carried)
        if record_id in self.parked:
            return Decision(_again(self.parked[record_id].label, label), record_id, None, offset, label)
        self.parked[record_id] = Parked(record_id, offset, label, self.now, self.here, carried)
        self.parked_classes[spelled(label)] += 1
        if carried is None:
            return Decision("parked", record_id, None, offset, label, None, self.now)
        raw, predicted, tenant = Raw(carried.features), carried.predicted, carried.tenant
        return Decision("parked", record_id, None, offset, label, predicted, self.now, raw, tenant=tenant)

    def brought_back(
        self, record_id: str, offset: int, label: LabelValue, carried: Carried | None
    ) -> Decision | None:
        """What became of the label where an earlier version remembered the id again; None where it cannot have.

        When it restarted it read an older epoch's decisions back under the present limit, and so ids that the older
        epoch's smaller limit had forgotten came back: how many depended on where it began to read.
        """
        found = None if record_id in self.waiting else self.forgotten_of_old(record_id)
        if found is None:
            return None
        decision = _decided(found.label, record_id, offset, label, carried)
        # Forgotten, then parked under the same id: mostly that comes to the same, and nothing was brought back.
        parked = self.parked.get(record_id)
        return None if parked is not None and decision.outcome == _again(parked.label, label) else decision

    def forgotten_of_old(self, record_id: str) -> Remembered | None:
        """An id that is not known any more, and would be if all epochs had had the present one's limit."""
        found = self.forgotten.get(record_id)
        if found is None:
            return None
        newer = len(self.forgotten) - 1 - list(self.forgotten).index(record_id) + len(self.remembered)
        return found if newer < self._rules.remember else None

    def meet(self, record_id: str) -> Parked | None:
        """Take out the parked label of this id; None where there is none."""
        parked = self.parked.pop(record_id, None)
        if parked is not None:
            name = spelled(parked.label)
            self.parked_classes[name] -= 1
            if not self.parked_classes[name]:
                del self.parked_classes[name]
        return parked

    def surplus_label(self) -> Decision | None:
        """After one more was parked: what becomes of the oldest, if there are too many."""
        if len(self.parked) <= self._rules.max_parked:
            return None
        return self._unmatched(next(iter(self.parked.values())))

    def resolve(self, record_id: str, label: LabelValue | None) -> None:
        """The id is decided for good, and remembered."""
        self.waiting.pop(record_id, None)
        self.remembered.pop(record_id, None)
        self.forgotten.pop(record_id, None)
        self.remembered[record_id] = Remembered(label, self.here)
        self._forget()

    def oldest_outcome(self) -> int | None:
        """The oldest `outcomes` offset that anything held here was written at."""
        held: list[Iterable[Waiting | Parked | Remembered]] = [
            (
                entry for entry in self.waiting.values() if entry.again_at is None
            ),  # or else: since it was made again
            self.parked.values(),
            self.remembered.values(),
        ]
        firsts = (next(iter(each), None) for each in held)
        return min((entry.outcome_offset for entry in firsts if entry is not None), default=None)

    def oldest_prediction(self) -> int | None:
        """The lowest offset of a prediction whose example waits. One made again may lie behind those of later examples."""
        lowest: int | None = None
        for entry in self.waiting.values():
            lowest = entry.prediction_offset if lowest is None else min(lowest, entry.prediction_offset)
            if entry.again_at is None:
                break
        return lowest

    def _give_up(self, entry: Waiting, outcome: Literal["expired", "evicted"]) -> Decision:
        self.resolve(entry.id, None)
        return Decision(outcome, entry.id, entry.source, weight=weight_beside(entry))

    def _unmatched(self, entry: Parked) -> Decision:
        self.meet(entry.id)
        return _alone("unmatched", entry.id, entry.offset, entry.label, entry.carried)

    def _forget(self) -> None:
        while len(self.remembered) > self._rules.remember:
            record_id, entry = self.remembered.popitem(last=False)
            self.forgotten[record_id] = entry
        while self.forgotten and len(self.forgotten) + len(self.remembered) > self._most_remembered:
            self.forgotten.popitem(last=False)


def _decided(
    first: LabelValue | None, record_id: str, offset: int, label: LabelValue, carried: Carried | None
) -> Decision:
    """A label whose id is decided; `first`: the label that was applied, None where its example was given up."""
    if first is None:
        return _alone("expired", record_id, offset, label, carried)
    return Decision(_again(first, label), record_id, None, offset, label)


def weight_beside(entry: Waiting) -> int | None:
    """The example's weight, where its prediction says whether the label is asked for."""
    return None if entry.beside is None else entry.beside.weight


def _alone(
    outcome: Literal["expired", "unmatched"],
    record_id: str,
    offset: int,
    label: LabelValue,
    carried: Carried | None,
) -> Decision:
    """A label without its example: applied from what it carries itself, if anything."""
    if carried is None:
        return Decision(outcome, record_id, None, offset, label)
    features, predicted, tenant = carried
    return Decision(
        "applied_late", record_id, None, offset, label, predicted, None, Raw(features), tenant=tenant
    )


def _again(first: LabelValue, label: LabelValue) -> Literal["duplicate", "conflict"]:
    return "duplicate" if first == label else "conflict"
