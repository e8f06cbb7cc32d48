"""One partition's ledger: every example and every label ends in exactly one outcome, counted.

Rules, in the order in which a record meets them (`service/mistakebound/core/step/partition_step.py` drives them):

1. stream time advances to the record's time, and never goes back;
2. examples waiting longer than `max_delay` expire, in offset order;
3. labels parked longer than `parking` become unmatched, or are applied late, in the order parked;
4. the record is handled;
5. the oldest waiting examples beyond `max_waiting` are evicted.

Age counts from the stream time at which an entry was made, so producers' clocks need not agree.
Resolved ids are remembered first-in first-out, trimmed after every decision. A rebuild infers nothing: `service/mistakebound/core/ledger/rebuild.py` applies recorded decisions to the same three maps.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter

from mistakebound.core.journal import Journal
from mistakebound.core.ledger.entries import Parked, Published, Remembered, Shared, Waiting
from mistakebound.core.ledger.ordered_map import OrderedMap
from mistakebound.core.messages.labels import Carried, spelled
from mistakebound.core.messages.schema import RecoveryPoint
from mistakebound.core.messages.tallies import Tallies, zero
from mistakebound.settings import LabelSettings, LabelValue

Scalars = tuple[int, int, Tallies, int, int, Mapping[str, Shared]]
"""Stream time, resolutions, tallies, the next offsets of examples and labels, and the schemas written."""


class Ledger:
    """What one partition holds: three maps, the stream time and the counts."""

    def __init__(self, rules: LabelSettings) -> None:
        self.max_delay_ms = None if rules.max_delay is None else round(rules.max_delay.total_seconds() * 1000)
        self.parking_ms = round(rules.parking.total_seconds() * 1000)
        self.max_parked = rules.max_parked
        self.max_waiting = rules.max_waiting
        self.remember_at_most = rules.remember
        self.stream_time = 0
        """Largest record time so far, in ms."""
        self.resolutions = 0
        self.tallies = Tallies(zero(), zero())
        self.examples_next = 0
        self.labels_next = 0
        self.predictions_end: Shared = 0
        """Offset that the next prediction will have, or lower."""
        self.outcomes_end: Shared = 0
        self.schemas: Mapping[str, Shared] = {}
        """By id: schemas that `outcomes` has, each with an offset from which on it is there, or a lower one. Never changed
        in place."""
        self.published: Mapping[int, Published] = {}
        """By example: predictions that are there before their example is consumed; nearly always none."""
        self.published_end = 0
        """Beyond the last of these examples."""
        self.missing = 0
        """Predictions that `outcomes` counts and the rebuild did not find; nearly always none."""
        self._waiting: OrderedMap[Waiting] = OrderedMap(attrgetter("source"))
        self._parked: OrderedMap[Parked] = OrderedMap(attrgetter("offset"))
        self._remembered: OrderedMap[Remembered] = OrderedMap(attrgetter("order"))
        self.waiting: Mapping[str, Waiting] = self._waiting.entries
        """Examples without a label, in offset order."""
        self.parked: Mapping[str, Parked] = self._parked.entries
        """Labels without an example, in the order parked."""
        self.remembered: Mapping[str, Remembered] = self._remembered.entries
        """Resolved ids, in the order resolved."""
        self._parked_classes: Counter[str] = Counter()
        self._scalars: Journal[Scalars] = Journal()
        self.next_deadline = -1
        """Nothing becomes overdue before this stream time; see `nothing_overdue`."""

    # --- what is held -----------------------------------------------------------------------------

    @property
    def parked_classes(self) -> Collection[str]:
        """Classes of the parked labels, as tallies spell them."""
        return self._parked_classes.keys()

    def nothing_overdue(self) -> bool:
        """Whether nothing is overdue; if so, sets the next deadline. Ask at every record later than `next_deadline`.

        Until then nothing can become overdue: later entries are never older, and only `rollback` and `restore` bring
        entries back, and both clear the deadline. To look for what is overdue at every record takes 0.2 us an example more,
        interpreted; compiled there is no difference.
        """
        if self.overdue_example() is not None or self.overdue_label() is not None:
            return False
        waiting, parked = self._waiting.oldest(), self._parked.oldest()
        # Whole numbers: a float rounds times beyond 2**53 ms, and a rebuild, which asks anew, would decide otherwise.
        deadline = (self.stream_time if parked is None else parked.at) + self.parking_ms
        if self.max_delay_ms is not None:
            deadline = min(
                deadline, (self.stream_time if waiting is None else waiting.at) + self.max_delay_ms
            )
        self.next_deadline = deadline
        return True

    def oldest_example(self) -> Waiting | None:
        """The example that has waited longest."""
        return self._waiting.oldest()

    def overdue_example(self) -> Waiting | None:
        """The oldest waiting example, if it has waited too long."""
        oldest = self._waiting.oldest()
        if oldest is None or self.max_delay_ms is None or self.stream_time - oldest.at <= self.max_delay_ms:
            return None
        return oldest

    def overdue_label(self) -> Parked | None:
        """The oldest parked label, if it has been parked too long."""
        oldest = self._parked.oldest()
        return oldest if oldest is not None and self.stream_time - oldest.at > self.parking_ms else None

    def surplus_label(self) -> Parked | None:
        """The oldest parked label, if there are too many."""
        return self._parked.oldest() if len(self.parked) > self.max_parked else None

    def recovery_point(self) -> RecoveryPoint:
        """From where a rebuild must read to find all that is held. Lower is always safe.

        Entries made in the step that is being closed have the topics' ends before it as their floors: their records
        cannot lie below.
        """
        waiting, parked, remembered = self._waiting.oldest(), self._parked.oldest(), self._remembered.oldest()
        oldest = [entry.outcomes_floor for entry in (waiting, parked, remembered) if entry is not None]
        return RecoveryPoint(
            predictions=self.predictions_end if waiting is None else waiting.predictions_floor,
            outcomes=min([self.outcomes_end, *oldest]),
            source=self.examples_next if waiting is None else waiting.source,
        )

    # --- transitions ------------------------------------------------------------------------------

    def wait(self, entry: Waiting) -> None:
        """An example was predicted."""
        self._waiting.put(entry)

    def park(self, record_id: str, offset: int, label: LabelValue, carried: Carried | None) -> None:
        """A label came before its example."""
        self._parked.put(Parked(record_id, offset, label, self.stream_time, self.outcomes_end, carried))
        self._parked_classes[spelled(label)] += 1

    def restore(self, waiting: Iterable[Waiting], parked: Iterable[Parked]) -> None:
        """On a rebuild: hold exactly these, in this order."""
        self._waiting.hold(waiting)
        self._parked.hold(parked)
        self._count_classes()
        self.next_deadline = -1

    def unpark(self, record_id: str) -> Parked:
        """A parked label leaves: its example came, or it may wait no longer."""
        entry = self._parked.pop(record_id)
        name = spelled(entry.label)
        self._parked_classes[name] -= 1
        if not self._parked_classes[name]:
            del self._parked_classes[name]
        return entry

    def _count_classes(self) -> None:
        self._parked_classes = Counter(spelled(entry.label) for entry in self.parked.values())

    def resolve(self, record_id: str, label: LabelValue | None, outcomes_floor: Shared | None = None) -> None:
        """The id is decided for good: it stops waiting, and is remembered."""
        if record_id in self.waiting:
            self._waiting.pop(record_id)
        self.remember(record_id, label, self.outcomes_end if outcomes_floor is None else outcomes_floor)

    def remember(self, record_id: str, label: LabelValue | None, outcomes_floor: Shared) -> None:
        """Remember a resolved id, and forget the oldest beyond the limit."""
        remembered = self.remembered
        if record_id in remembered:
            self._remembered.pop(record_id)
        self.resolutions += 1
        self._remembered.put(Remembered(record_id, label, outcomes_floor, self.resolutions))
        if len(remembered) > self.remember_at_most:
            self._forget()

    def limit_memory(self, limit: int) -> None:
        """From now on so many ids are remembered: an epoch begins."""
        self.remember_at_most = limit
        self._forget()

    def _forget(self) -> None:
        while len(self.remembered) > self.remember_at_most:
            oldest = self._remembered.oldest()
            assert oldest is not None
            self._remembered.pop(oldest.id)

    # --- one transaction --------------------------------------------------------------------------

    def begin(self) -> None:
        """A step begins: what follows can be rolled back."""
        tallies = self.tallies.copy()
        self._scalars.begin()
        self._scalars.note(
            (
                self.stream_time,
                self.resolutions,
                tallies,
                self.examples_next,
                self.labels_next,
                self.schemas,
            )
        )
        self.keep()

    def keep(self) -> None:
        """Forget how to undo what was done before: on a rebuild that journal would grow as large as the log."""
        for entries in (self._waiting, self._parked, self._remembered):
            entries.begin()

    def rollback(self) -> None:
        """Restore everything as it was at `begin`; a second time, at the one before."""
        (before,) = self._scalars.take_back()
        (
            self.stream_time,
            self.resolutions,
            self.tallies,
            self.examples_next,
            self.labels_next,
            self.schemas,
        ) = before
        for entries in (self._waiting, self._parked, self._remembered):
            entries.rollback()
        self._count_classes()
        self.next_deadline = -1
