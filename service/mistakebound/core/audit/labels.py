"""Labels and decisions of one partition: what each came to, and the update that it caused, or not."""

from msgspec import UNSET, Raw, json
from msgspec.structs import replace

from mistakebound.core.audit.compare import ULPS, differing, same_score, shown
from mistakebound.core.audit.counts import Counts
from mistakebound.core.audit.dead_letters import DeadLetters
from mistakebound.core.audit.findings import BROUGHT_BACK, Findings
from mistakebound.core.audit.partition_steps import RecordedStep
from mistakebound.core.audit.probabilities import count
from mistakebound.core.audit.reference_ledger import ReferenceLedger, Waiting, weight_beside
from mistakebound.core.audit.replica import Replica
from mistakebound.core.audit.schemas import WrittenSchemas
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import CLASS_NAMES_BYTES, resolve
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision, Update, encode
from mistakebound.core.records import Lost, Record
from mistakebound.settings import LabelValue


class Labels:
    """Decisions in their order, and updates in theirs, against those recorded. One epoch's."""

    def __init__(
        self,
        replica: Replica,
        partition: int,
        ledger: ReferenceLedger,
        counts: Counts,
        dead_letters: DeadLetters,
        findings: Findings,
    ) -> None:
        self.replica, self.partition, self.ledger, self.counts = replica, partition, ledger, counts
        self.settings, self._model = replica.model.settings, replica.model
        self._dead_letters, self._findings = dead_letters, findings
        self.schemas = WrittenSchemas(partition, findings)
        """Of this epoch."""
        self._recorded: list[tuple[Decision, int]] = []
        self._cursor = 0

    # --- decisions --------------------------------------------------------------------------------

    def begin(self, step: RecordedStep) -> None:
        """Take up the recorded decisions of a step."""
        self._recorded, self._cursor, self._last = step.decisions, 0, step.last_offset
        self._point()

    def _point(self) -> None:
        self.ledger.here = self._recorded[self._cursor][1] if self.undecided() else self._last

    def undecided(self) -> bool:
        """Whether recorded decisions are left in this step."""
        return self._cursor < len(self._recorded)

    def recorded(self) -> Decision | None:
        """The next recorded decision."""
        return self._recorded[self._cursor][0] if self.undecided() else None

    def _by(self) -> str:
        """The step whose version and decisions say so: the fault may be there."""
        return f"(by outcomes-{self.partition} offset {self._last})"

    def decided(self, made: Decision) -> None:
        """Compare a decision with the next recorded one."""
        recorded, offset = self._recorded[self._cursor] if self.undecided() else (None, self._last)
        self._cursor += 1
        self.counts.decided(made)
        holds = recorded is not None and not differing(recorded, made)
        where = f"outcomes-{self.partition} offset {offset}"
        self._findings.check(
            "decisions", where, holds, lambda: f"decision {shown(recorded)} should be {shown(made)}"
        )
        self._point()

    def end(self) -> None:
        """Recorded decisions that are left follow from nothing."""
        for recorded, offset in self._recorded[self._cursor :]:
            where = f"outcomes-{self.partition} offset {offset}"
            text = f"decision {shown(recorded)} follows from nothing"
            self._findings.check("decisions", where, False, text)
        self._cursor = len(self._recorded)

    # --- labels -----------------------------------------------------------------------------------

    def take(self, record: Record) -> None:
        """A label record was consumed."""
        self.ledger.newest_label = record.offset
        if isinstance(record, Lost):
            self._dead_letters.expect_gap(record)
            self.decided(Decision("invalid", None, None, record.offset, first=record.first))
            return
        try:
            record_id, label, carried = self._model.reader.label(record, self.schemas.find)
            self._refused_by_an_earlier_version(record)
            new_class = self._limited(label)
            if carried is not None:
                self._model.features(carried.features, carried.tenant)
            if carried is not None or new_class:
                self._dead_letters.check_fits(record, self.recorded())
        except BadRecord as fault:
            self._dead_letters.expect(record, fault)
            self.decided(Decision("invalid", None, None, record.offset))
            return
        made = self.ledger.brought_back(record_id, record.offset, label, carried)
        if made is None or not self.is_brought_back(made):
            made = self.ledger.label(record_id, record.offset, label, carried)
        if made is None:
            self.apply(self.ledger.waiting[record_id], record.offset, label)
            return
        self.ended(made)
        if made.outcome == "parked" and (surplus := self.ledger.surplus_label()) is not None:
            self.ended(surplus)

    def _refused_by_an_earlier_version(self, record: Record) -> None:
        """Raises BadRecord where 1.0 was refused: earlier versions took it for no integer, and what they decided stands."""
        recorded = self.recorded()
        if recorded is None or recorded.outcome != "invalid" or recorded.label_offset != record.offset:
            return
        if "labels" in self._model.reader.decodings:  # which no such version read
            return
        message, pointers = json.decode(record.value or b""), self.settings.messages
        for pointer, reason in ((pointers.label, "unknown-label"), (pointers.prediction, "bad-prediction")):
            if type(resolve(message, pointer)) is float:
                self._findings.note("labels such as 1.0, which an earlier version refused, were left refused")
                raise BadRecord(reason, "as recorded")

    def is_brought_back(self, made: Decision) -> bool:
        """Whether it was decided so, by an earlier version that remembered again what an older epoch had forgotten."""
        recorded = self.recorded()
        if recorded is None or differing(recorded, made):
            return False
        self._findings.note(BROUGHT_BACK)
        return True

    def _limited(self, label: LabelValue) -> bool:
        """Whether the label is of a new open class. Raises BadRecord for one too many.

        A parked label's class counts as soon as an applied one's.
        """
        seen, early = self.counts.life.actual, self.ledger.parked_classes
        if self._model.classes or spelled(label) in seen or spelled(label) in early:
            return False
        names = {*seen, *early, spelled(label)}
        if len(names) > self.settings.labels.max_classes:
            raise BadRecord("unknown-label", "one class too many")
        if sum(len(encode(name)) for name in names) > CLASS_NAMES_BYTES:
            raise BadRecord("unknown-label", "one class more than may be spelled")
        return True

    def ended(self, made: Decision) -> None:
        """An id or a label came to this; a label applied late is judged by its own content."""
        if made.outcome == "applied_late":
            assert made.id is not None
            assert made.label_offset is not None
            assert made.label is not None
            assert made.features is not UNSET
            raw = bytes(made.features)
            at, tenant = self.ledger.now, made.tenant
            entry = Waiting(made.id, made.label_offset, at, made.prediction, 0, raw, 0, 0, 0, tenant=tenant)
            self._judged(entry, made.label, late=True)
        elif made.outcome in ("expired", "evicted") and made.label_offset is None:
            recorded = self.recorded()
            if made.source in self.ledger.made_again and recorded is not None:
                self._trusted(Beside.of_decision(made), Beside.of_decision(recorded))
                made = replace(made, weight=recorded.weight)
        self.decided(made)

    def apply(self, entry: Waiting, label_offset: int, label: LabelValue) -> None:
        """The label meets its example."""
        recorded = self.recorded()
        if entry.source in self.ledger.made_again and recorded is not None:
            entry = entry._replace(beside=self._trusted(entry.beside, Beside.of_decision(recorded)))
        self._judged(entry, label, late=False)
        made = Decision("applied", entry.id, entry.source, label_offset, label, entry.predicted)
        self.decided(made if entry.beside is None else entry.beside.in_decision(made))

    def _trusted(self, made: Beside | None, recorded: Beside | None) -> Beside | None:
        """Where a prediction was made again the first one is gone: its decision says what it said beside its class."""
        if recorded != made:
            self._findings.note("what predictions that are gone said beside their class was taken on trust")
        return recorded

    def _judged(self, entry: Waiting, label: LabelValue, *, late: bool) -> None:
        """Count the label, resolve the id, and learn if that is due."""
        mistaken = entry.predicted != label
        waiting, of_epoch = len(self.ledger.waiting), entry.epoch == self._model.epoch
        beside = entry.beside
        if self.settings.predictions.probability and beside is not None and beside.bucket is not None:
            assert beside.probability is not None
            for tally in (self.counts.life, *(self.counts.epoch,) * of_epoch):
                count(tally, beside.bucket, beside.probability, label, self._model.classes[0])
        self.counts.judged(label, entry.predicted, of_epoch=of_epoch, waiting=waiting)
        self.counts.of_tenant(entry.tenant, labelled=1, mistakes=mistaken)
        self.ledger.resolve(entry.id, label)
        self._learned(entry, label, mistaken=mistaken, late=late)

    # --- updates ----------------------------------------------------------------------------------

    def _learned(self, entry: Waiting, label: LabelValue, *, mistaken: bool, late: bool) -> None:
        """An update must be there exactly where one is due."""
        model, p = self._model, self.partition
        due: Update | None = None
        before = model.version()
        try:
            x: Features | None = model.features(entry.features, entry.tenant)
        except BadRecord:  # predicted in an older epoch, under other settings
            x = None
        known = x is not None and model.reader.knows(label)
        says = model.says(x) if known and x is not None else entry.predicted
        self.counts.at_label(mistaken=says != label, of_epoch=entry.epoch == model.epoch)
        asks = self.settings.labels.ask is not None
        if x is not None and asks:
            self.counts.measured(model.learner.length(x))
        wanted = not asks or not (late or weight_beside(entry) == 0)
        if x is not None and wanted and known:
            amount, predicted = model.decide(x, label)
            behind = 0
            if self.settings.learner.delay_policy == "issued" and entry.epoch == model.epoch:
                amount, predicted = float(mistaken), entry.predicted
                behind = sum(model.updates) - entry.updates
            if amount:
                clock = [count + (q == p) for q, count in enumerate(model.clock)]
                n, raw, source = model.updates[p] + 1, Raw(entry.features), entry.source
                due = Update(
                    model.epoch, n, clock, entry.id, label, predicted, raw, source, before, behind,
                    late=late, amount=amount, tenant=entry.tenant, restarts=model.restarts,
                )  # fmt: skip
        model.clock[p] += 1
        self._meet(entry, label, due, late=late)

    def _meet(self, entry: Waiting, label: LabelValue, due: Update | None, *, late: bool) -> None:
        """Compare what is due with the next recorded update, and fold the latter.

        Other partitions' clocks can be checked for averaged learners only: no others record them in their versions.
        """
        at_hand = (late, entry.source, entry.id)
        self._drop_strangers(at_hand)
        found = self.replica.peek(self.partition)
        its_own = found is not None and _cause(found[1]) == at_hand
        if due is None:
            self._findings.check(
                "labels without update",
                f"updates-{self.partition}" if found is None else found[0].location,
                not its_own,
                lambda: (
                    f"an update for {entry.id!r}, label {shown(label)}, where the model does not err {self._by()}"
                ),
            )
        elif not its_own or found is None:
            text = f"no update {due.n} for {entry.id!r}, label {shown(label)}, where one was due"
            self._findings.check("updates", f"updates-{self.partition}", False, text)
        else:
            record, recorded = found
            ulps = ULPS if self._model.kind.rounds(self.settings.learner) else 0
            leave = ("amount",) if same_score(recorded.amount, due.amount, ulps=ulps) else ()
            clocked = self._model.learner.averaged
            wrong = differing(recorded, due, leave=leave if clocked else (*leave, "clock"))
            if not clocked and recorded.clock[self.partition] != due.clock[self.partition]:
                wrong += f"; clock is {recorded.clock}, entry {self.partition} should be {due.clock[self.partition]}"
            wrong += f" {self._by()}" * bool(wrong)
            self._findings.check("updates", record.location, not wrong, wrong)
        if its_own:
            self._fold()

    def _fold(self) -> None:
        clock, before = self._model.clock, self._model.updates[self.partition]
        found = self.replica.peek(self.partition)
        self.replica.fold(self.partition)
        self._model.clock = clock
        if self._model.updates[self.partition] > before:
            self.counts.updated()
            self.counts.of_tenant(None if found is None else found[1].tenant, updates=1)

    def _drop_strangers(self, at_hand: tuple[bool, int, str]) -> None:
        """Pass updates that have no cause: their example does not wait, and is not the one at hand."""
        while (found := self.replica.peek(self.partition)) is not None:
            recorded = found[1]
            if _cause(recorded)[:2] == at_hand[:2] or self._its_turn_may_come(recorded):
                return
            self._stranger(*found, f" {self._by()}")

    def _its_turn_may_come(self, recorded: Update) -> bool:
        """Whether its example waits or its late label is parked, or either is still to be consumed."""
        if recorded.late:
            newest, held = self.ledger.newest_label, self.ledger.parked.get(recorded.id)
            return recorded.source > newest or (held is not None and held.offset == recorded.source)
        newest, example = self.ledger.newest_source, self.ledger.waiting.get(recorded.id)
        return recorded.source > newest or (example is not None and example.source == recorded.source)

    def _stranger(self, record: Record, recorded: Update, before: str) -> None:
        text = f"update {recorded.n} for {recorded.id!r} follows from no label{before}"
        self._findings.check("updates", record.location, False, text)
        self._fold()

    def unexplained(self, updates: int | None, step_offset: int) -> None:
        """Updates before the version of this step (None: the epoch is over) that no label explained are differences."""
        before = f" (before outcomes-{self.partition} offset {step_offset})"
        while (found := self.replica.peek(self.partition)) is not None:
            if updates is not None and found[1].n > updates:
                return
            self._stranger(*found, before)


def _cause(update: Update) -> tuple[bool, int, str]:
    """The example or late label that caused an update."""
    return update.late, update.source, update.id
