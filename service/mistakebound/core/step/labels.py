"""What a partition step does with a label: it judges the published prediction, and the model learns from it.

Everything is decided here once. `outcomes` keeps each decision, with the label's value, so that a rebuild applies it
and never decides again.
"""

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from mistakebound.core.faults import BadRecord
from mistakebound.core.ledger.entries import Parked, Waiting
from mistakebound.core.ledger.label_outcomes import OUTCOMES
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.labels import Carried
from mistakebound.core.messages.schema import Decision, Update, Version, encode
from mistakebound.core.records import Outgoing, Record
from mistakebound.core.step.draft import Draft
from mistakebound.core.step.explain import Explaining
from mistakebound.core.step.open_classes import add_class
from mistakebound.settings import LabelValue

NO_EPOCH = 0
"""Epochs begin at 1."""


class Labels:
    """The labels of one partition step."""

    def __init__(self, draft: Draft, explain: int) -> None:
        """`explain`: scores of single features that may be taken to explain mistakes."""
        self.draft = draft
        self.model, self.ledger = draft.model, draft.ledger
        self.explaining = Explaining(explain)
        self._negative = draft.model.classes[1] if len(draft.model.classes) == 2 else None
        self._issued = draft.state.settings.learner.delay_policy == "issued"

    def take(self, record: Record, offset: int, time_ms: int) -> None:
        """Decide what becomes of it. Raises BadRecord."""
        draft, ledger = self.draft, self.ledger
        record_id, label, carried = draft.reader.label(record, draft.schemas.find)
        new_class = None
        # Open classes: any text is one; too many are refused before one is parked or applied, never after.
        if not self.model.classes:
            new_class = add_class(
                label,
                ledger.tallies.life.actual,
                ledger.parked_classes,
                draft.state.settings.labels.max_classes,
            )
        # Checked even where it is not needed: a record is valid or not whatever others came.
        if carried is not None:
            self.model.features(carried.features, carried.tenant)
            draft.sizes.check_carried(carried.features)
        if new_class is not None:
            settings = draft.state.settings
            of_tenants = settings.features.cross is not None or bool(ledger.tallies.tenants)
            draft.sizes.check_classes(*new_class, settings.batch.max_records, of_tenants=of_tenants)
        waiting = ledger.waiting.get(record_id)
        if waiting is not None:  # nearly every label: `OUTCOMES` says the same, whatever the label carries
            if time_ms >= 0:
                delay_ms = time_ms - waiting.at
                draft.facts.label_delays_seconds.append(delay_ms / 1000 if delay_ms > 0 else 0.0)
            self._apply(waiting, offset, label)
            return
        resolved, with_content = ledger.remembered.get(record_id), carried is not None
        earlier = resolved or ledger.parked.get(record_id)
        if earlier is None:
            outcome = OUTCOMES["unknown"][with_content]
        elif resolved is not None and resolved.label is None:
            outcome = OUTCOMES["given up"][with_content]
        else:
            outcome = OUTCOMES["same label" if earlier.label == label else "other label"][with_content]
        if outcome == "parked":
            self._park(record_id, offset, label, carried)
        elif outcome == "applied_late" and carried is not None:
            self._apply_late(record_id, offset, label, carried)
        else:
            draft.decisions.append(Decision(outcome, record_id, None, offset, label))

    def unpark_for(self, entry: Waiting) -> None:
        """The example of a parked label has come."""
        early = self.ledger.unpark(entry.id)
        self._apply(entry, early.offset, early.label)

    def unpark(self, alone: Parked) -> None:
        """No example came for a parked label, and it may wait no longer."""
        entry = self.ledger.unpark(alone.id)
        outcome = OUTCOMES["never came"][entry.carried is not None]
        if outcome == "applied_late" and entry.carried is not None:
            self._apply_late(entry.id, entry.offset, entry.label, entry.carried)
        else:
            self.draft.decisions.append(Decision(outcome, entry.id, None, entry.offset, entry.label))

    def _park(self, record_id: str, offset: int, label: LabelValue, carried: Carried | None) -> None:
        """The label waits for its example; if that makes one too many, the oldest waits no longer."""
        draft, ledger, predicted, tenant = self.draft, self.ledger, None, None
        features: Raw | UnsetType = UNSET
        ledger.park(record_id, offset, label, carried)
        if carried is not None:
            features, predicted, tenant = Raw(carried.features), carried.predicted, carried.tenant
            draft.bytes += len(carried.features)
        at = ledger.stream_time
        draft.decisions.append(
            Decision("parked", record_id, None, offset, label, predicted, at, features, tenant=tenant)
        )
        surplus = ledger.surplus_label()
        if surplus is not None:
            self.unpark(surplus)

    def _apply(self, entry: Waiting, label_offset: int, label: LabelValue) -> None:
        self._judge(entry, label)
        decision = Decision("applied", entry.id, entry.source, label_offset, label, entry.predicted)
        self.draft.ended(entry, decision)

    def _apply_late(self, record_id: str, label_offset: int, label: LabelValue, carried: Carried) -> None:
        """Judge the label record's own content. The epoch of its prediction is not known."""
        features, predicted, tenant = carried
        at, raw = self.ledger.stream_time, Raw(features)
        entry = Waiting(record_id, label_offset, at, predicted, NO_EPOCH, features, 0, 0, tenant=tenant)
        self.draft.bytes += len(features)
        self._judge(entry, label, late=True)
        self.draft.decisions.append(
            Decision(
                "applied_late", record_id, None, label_offset, label, predicted, None, raw, tenant=tenant
            )
        )

    def _judge(self, entry: Waiting, label: LabelValue, *, late: bool = False) -> None:
        """Count the published prediction, resolve the id, and learn."""
        draft, model, ledger = self.draft, self.model, self.ledger
        of_epoch = entry.epoch == model.epoch
        mistaken = draft.counting.judged(label, entry.predicted, of_epoch, len(ledger.waiting))
        if entry.tenant is not None:
            draft.counting.judged_of(entry.tenant, mistaken=mistaken)
        probabilities = draft.more_said.probabilities
        if probabilities is not None and entry.beside is not None:
            probabilities.judged(entry.beside, label, of_epoch=of_epoch)
        ledger.resolve(entry.id, label)
        if mistaken:
            self.explaining.mistake(model, draft.partition, entry, label, ledger.stream_time)
        self._learn(entry, label, mistaken, of_epoch, late)

    def _learn(self, entry: Waiting, label: LabelValue, mistaken: bool, of_epoch: bool, late: bool) -> None:
        """Count the label, and make the update that is due. Whether one is due is decided here and nowhere else."""
        draft, model = self.draft, self.model
        amount, predicted, behind, asked = 0.0, entry.predicted, 0, True
        x: Features | None
        try:
            x = model.features(entry.features, entry.tenant)
        except BadRecord:  # predicted in an older epoch, whose settings took what these do not
            x = None
        if draft.more_said.asking is not None and x is not None:
            draft.counting.length(model.learner.length(x))
            asked = not late and (entry.beside is None or entry.beside.weight != 0)
        # An unknown one was parked in an older epoch, which had other classes.
        if x is not None and draft.reader.knows(label):
            due, now, says = model.judge(x, label)
            mistaken_now = says != label
            if self._issued and of_epoch:
                due, behind = 1.0 if mistaken else 0.0, model.folded() - entry.updates
            else:
                predicted = now
            amount = due if asked else 0.0
        else:
            mistaken_now = mistaken
        if mistaken_now:
            draft.counting.mistaken_at_label(of_epoch=of_epoch)
        version = model.version() if amount else None  # before this label is counted
        model.labelled(draft.partition)
        if x is not None and version is not None:
            self._update(entry, x, label, predicted, behind, amount, version, late)

    def _update(
        self,
        entry: Waiting,
        x: Features,
        label: LabelValue,
        predicted: LabelValue | None,
        behind: int,
        amount: float,
        version: Version,
        late: bool,
    ) -> None:
        """Learn from the label, and write the update down. `version`: the model's before it knew of this label."""
        draft, model, partition = self.draft, self.model, self.draft.partition
        seen = model.restarts
        n = model.learn(partition, x, label, predicted, behind, amount)
        draft.counting.updated(demoted=label == self._negative, tenant=entry.tenant)
        clock, raw = list(model.clock), Raw(entry.features)
        update = Update(
            model.epoch, n, clock, entry.id, label, predicted, raw, entry.source, version, behind, late=late,
            tenant=entry.tenant,
        )  # fmt: skip
        if amount != 1.0:
            update = replace(update, amount=amount)
        if seen:
            update = replace(update, restarts=seen)
        draft.write(Outgoing("updates", partition, entry.id.encode(), encode(update)))
