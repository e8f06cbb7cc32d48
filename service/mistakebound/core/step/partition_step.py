"""A partition step: a step's work on one partition, record after record, every decision written down in order.

Everything is decided here once. `outcomes` keeps each decision, with the label's value, so that a rebuild applies it
and never decides again.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from mistakebound.core.faults import BadRecord
from mistakebound.core.learners import Score
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.ledger.label_outcomes import OUTCOMES
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.dead_letters import dead_letter
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.labels import Carried, spelled
from mistakebound.core.messages.schema import Decision, Prediction, Update, encode
from mistakebound.core.records import Lost, Outgoing, Position, Record, Stream, TopicPartition
from mistakebound.core.step.asking import asking
from mistakebound.core.step.counting import Counting
from mistakebound.core.step.explain import Explaining
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.open_classes import add_class
from mistakebound.core.step.outcome_records import write_outcomes
from mistakebound.core.step.probabilities import Probabilities
from mistakebound.core.step.schemas import StepSchemas
from mistakebound.core.step.sizes import Sizes
from mistakebound.core.step.state import State
from mistakebound.settings import LabelValue

NO_EPOCH = 0
"""Epochs begin at 1."""


class PartitionStep:
    """One partition's share of a step."""

    def __init__(self, state: State, partition: int, facts: StepFacts, explain: int = 0) -> None:
        self.state, self.partition, self.facts = state, partition, facts
        self.model, self.ledger = state.model, state.ledgers[partition]
        self.reader = state.model.reader
        self.negative = state.model.classes[1] if len(state.model.classes) == 2 else None
        self.began_with = state.model.version()
        self.decisions: list[Decision] = []
        self.order: list[int] = [0]
        """Run lengths of examples and labels consumed, examples first."""
        self.of_labels = False
        """Whether the last run is of labels."""
        self.newest = [-1, -1]
        """Largest record time of the examples consumed, and of the labels."""
        self.outputs: list[Outgoing] = []
        self.explaining = Explaining(explain)
        self.adopted: list[int] | None = None
        """First and last example whose prediction was published before: `core/step/torn_step.py`."""
        self.bytes = 0
        """To be written so far, without small decisions, whose number the allowance limits."""
        self.ledger.begin()
        self.counting = Counting(self.ledger.tallies, facts, state.model.classes)
        self.sizes = Sizes(state.model, state.limits)
        self.schemas = StepSchemas(
            state.schemas, partition, self.ledger, self.began_with, state.limits.outcomes
        )
        self.issued = state.settings.learner.delay_policy == "issued"
        self.asking = asking(state.settings.labels)
        self.probabilities: Probabilities | None = None
        if state.settings.predictions.probability:
            self.probabilities = Probabilities(self.ledger.tallies, state.model.classes[0])

    def run(self, merge: Merge, drained: Collection[TopicPartition], allowance: int, room: int) -> None:
        """Steps 1 to 5 of the ledger's rules, record after record, while the allowance lasts.

        It also ends once what is to be written takes `room` bytes, but always takes one record.
        """
        ledger, waiting, most = self.ledger, self.ledger.waiting, self.ledger.max_waiting
        for record in merge.take(self.partition, drained):
            time_ms = record.timestamp_ms
            if time_ms > ledger.stream_time:  # noqa: PLR1730 - `max` would be a call for each record
                ledger.stream_time = time_ms
            if ledger.stream_time > ledger.next_deadline and not ledger.nothing_overdue():
                allowance = self.clear_away(allowance, room)
                if (
                    allowance <= 0
                ):  # the record waits for the next step; stream time has reached its time already
                    merge.put_back(record)
                    return
            self._consume(record, time_ms)
            while len(waiting) > most and (oldest := ledger.oldest_example()) is not None:
                self._give_up(oldest, "evicted")
            allowance -= 1
            if allowance <= 0 or self.bytes >= room:
                return

    def clear_away(self, allowance: int, room: int) -> int:
        """Take what is overdue from the ledger; returns what is left of the allowance."""
        ledger = self.ledger
        while allowance > 0 and (late := ledger.overdue_example()) is not None:
            self._give_up(late, "expired")
            allowance -= 1
        while allowance > 0 and (alone := ledger.overdue_label()) is not None:
            self._unpark(alone.id)
            allowance = 0 if self.bytes >= room else allowance - 1
        return allowance

    def _write(self, record: Outgoing) -> None:
        self.outputs.append(record)
        self.bytes += len(record.value or b"")

    def close(self, outputs: list[Outgoing]) -> Position:
        """Add this partition step's records to the step's, `outcomes` last; returns the partition's position."""
        ledger, recovery_point = self.ledger, self.ledger.recovery_point()
        self.counting.close(self.decisions, sum(self.order[0::2]), sum(self.order[1::2]))
        newest, (examples, labels) = self.facts.newest_record_ms, self.newest
        if examples >= newest.get("examples", 0):
            newest["examples"] = examples
        if labels >= newest.get("labels", 0):
            newest["labels"] = labels
        outputs += self.outputs
        schemas = self.schemas.close()
        self.facts.explained_mistakes += self.explaining.explained
        largest = self.state.limits.outcomes
        outputs += write_outcomes(
            self.partition,
            self.began_with,
            self.decisions,
            self.order,
            ledger,
            recovery_point,
            largest,
            self.adopted,
            self.state.pointers,
            schemas,
        )
        return Position(ledger.examples_next, ledger.labels_next, encode(recovery_point).decode())

    def _consume(self, record: Record, time_ms: int) -> None:
        is_label = record.topic == "labels"
        if is_label is self.of_labels:
            self.order[-1] += 1
        else:
            self.of_labels = is_label
            self.order.append(1)
        if time_ms > self.newest[is_label]:  # noqa: PLR1730 - as above
            self.newest[is_label] = time_ms
        offset = record.offset
        try:
            if is_label:
                self.ledger.labels_next = offset + 1
                self._label(record, offset, time_ms)
            else:
                self.ledger.examples_next = offset + 1
                self._example(record, offset, time_ms)
        except BadRecord as fault:
            self._invalid(record, fault)

    # --- examples ---------------------------------------------------------------------------------

    def _example(self, record: Record, offset: int, time_ms: int) -> None:
        model, ledger = self.model, self.ledger
        record_id, raw, tenant = self.reader.example(record, self.schemas.find)
        x = model.features(raw, tenant)
        self.sizes.check(record, raw)
        if record_id in ledger.waiting or record_id in ledger.remembered:
            self.decisions.append(Decision("duplicate", record_id, offset))
            return
        score = model.score(x)
        predicted = model.predict(score)
        one, many = (score, UNSET) if isinstance(score, float) else (UNSET, score)
        prediction = Prediction(
            id=record_id,
            prediction=predicted,
            score=one,
            scores=many,
            features=Raw(raw),
            source=offset,
            at=ledger.stream_time,
            model=model.encoded_version(),  # type: ignore[arg-type]
            tenant=UNSET if tenant is None else tenant,
        )
        beside: Beside | None = None
        if one is not UNSET and not (self.asking is None and self.probabilities is None):
            prediction = self._said(prediction, x, one)
            beside = Beside.of(prediction)
        self._write(Outgoing("predictions", self.partition, record.key, encode(prediction), record.headers))
        entry = Waiting(
            record_id,
            offset,
            ledger.stream_time,
            predicted,
            model.epoch,
            raw,
            ledger.predictions_end,
            ledger.outcomes_end,
            model.folded(),
            beside,
            tenant,
        )
        ledger.wait(entry)
        if tenant is not None:
            self.counting.predicted(tenant)
        if predicted is not None:
            self.facts.predicted[spelled(predicted)] += 1
        self.facts.margins.append(confidence(score))
        if time_ms >= 0:
            self.facts.predicted_record_ms.append(time_ms)
        if record_id in ledger.parked:
            early = ledger.unpark(record_id)
            self._apply(entry, early.offset, early.label)

    def _said(self, prediction: Prediction, x: Features, score: float) -> Prediction:
        """The prediction, with what the settings have it say beside its score."""
        if self.asking is not None:
            prediction = self.asking.said(prediction, score)
            self.facts.asked[prediction.ask is True] += 1
        if self.probabilities is not None:
            prediction = self.probabilities.said(prediction, score, self.model.size(x))
        return prediction

    def _give_up(self, entry: Waiting, outcome: Literal["expired", "evicted"]) -> None:
        self.ledger.resolve(entry.id, None)
        self._ended(entry, Decision(outcome, entry.id, entry.source))

    def _ended(self, entry: Waiting, decision: Decision) -> None:
        """Write down what became of an example, and what its prediction had said beside its class."""
        self.decisions.append(decision if entry.beside is None else entry.beside.in_decision(decision))

    # --- labels -----------------------------------------------------------------------------------

    def _label(self, record: Record, offset: int, time_ms: int) -> None:
        ledger = self.ledger
        record_id, label, carried = self.reader.label(record, self.schemas.find)
        new_class = None
        if (
            not self.model.classes
        ):  # any text is a class; too many are refused before one is parked or applied, never after
            new_class = add_class(
                label,
                ledger.tallies.life.actual,
                ledger.parked_classes,
                self.state.settings.labels.max_classes,
            )
        if (
            carried is not None
        ):  # checked even where it is not needed: a record is valid or not whatever others came
            self.model.features(carried.features, carried.tenant)
            self.sizes.check_carried(carried.features)
        if new_class is not None:
            settings = self.state.settings
            of_tenants = settings.features.cross is not None or bool(ledger.tallies.tenants)
            self.sizes.check_classes(*new_class, settings.batch.max_records, of_tenants=of_tenants)
        waiting = ledger.waiting.get(record_id)
        if waiting is not None:  # the first row of `OUTCOMES`: nearly every label ends here
            if time_ms >= 0:
                self.facts.label_delays_seconds.append(max(0, time_ms - waiting.at) / 1000)
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
            self.decisions.append(Decision(outcome, record_id, None, offset, label))

    def _park(self, record_id: str, offset: int, label: LabelValue, carried: Carried | None) -> None:
        """The label waits for its example; if that makes one too many, the oldest waits no longer."""
        ledger, predicted, tenant = self.ledger, None, None
        features: Raw | UnsetType = UNSET
        ledger.park(record_id, offset, label, carried)
        if carried is not None:
            features, predicted, tenant = Raw(carried.features), carried.predicted, carried.tenant
            self.bytes += len(carried.features)
        at = ledger.stream_time
        self.decisions.append(
            Decision("parked", record_id, None, offset, label, predicted, at, features, tenant=tenant)
        )
        surplus = ledger.surplus_label()
        if surplus is not None:
            self._unpark(surplus.id)

    def _apply(self, entry: Waiting, label_offset: int, label: LabelValue) -> None:
        self._judge(entry, label)
        self._ended(entry, Decision("applied", entry.id, entry.source, label_offset, label, entry.predicted))

    def _apply_late(self, record_id: str, label_offset: int, label: LabelValue, carried: Carried) -> None:
        """Judge the label record's own content. The epoch of its prediction is not known."""
        features, predicted, tenant = carried
        at, raw = self.ledger.stream_time, Raw(features)
        entry = Waiting(record_id, label_offset, at, predicted, NO_EPOCH, features, 0, 0, tenant=tenant)
        self.bytes += len(features)
        self._judge(entry, label, late=True)
        self.decisions.append(
            Decision(
                "applied_late", record_id, None, label_offset, label, predicted, None, raw, tenant=tenant
            )
        )

    def _judge(self, entry: Waiting, label: LabelValue, *, late: bool = False) -> None:
        """Count the published prediction, resolve the id, and learn."""
        model, ledger = self.model, self.ledger
        mistaken = self.counting.judged(
            label, entry.predicted, of_epoch=entry.epoch == model.epoch, outstanding=len(ledger.waiting)
        )
        if entry.tenant is not None:
            self.counting.judged_of(entry.tenant, mistaken=mistaken)
        if self.probabilities is not None and entry.beside is not None:
            self.probabilities.judged(entry.beside, label, of_epoch=entry.epoch == model.epoch)
        ledger.resolve(entry.id, label)
        if mistaken:
            self.explaining.mistake(model, self.partition, entry, label, ledger.stream_time)
        self._learn(entry, label, mistaken, late=late)

    def _learn(self, entry: Waiting, label: LabelValue, mistaken: bool, *, late: bool) -> None:
        """Count the label, and make the update that is due. Whether one is due is decided here and nowhere else."""
        model, partition = self.model, self.partition
        amount, predicted, behind = 0.0, entry.predicted, 0
        of_epoch = entry.epoch == model.epoch
        try:
            x = model.features(entry.features, entry.tenant)
        except BadRecord:  # predicted in an older epoch, whose settings took what these do not
            self.counting.at_label(mistaken=mistaken, of_epoch=of_epoch)
            model.labelled(partition)
            return
        if self.asking is not None:
            self.counting.length(model.learner.length(x))
            if late or (entry.beside is not None and entry.beside.weight == 0):
                if self.reader.knows(label):
                    mistaken = model.says(x) != label
                self.counting.at_label(mistaken=mistaken, of_epoch=of_epoch)
                model.labelled(partition)
                return
        if self.reader.knows(label):  # or else it was parked in an older epoch, which had other classes
            amount, predicted, says = model.judge(x, label)
            if says != label:
                self.counting.at_label(mistaken=True, of_epoch=of_epoch)
            if self.issued and of_epoch:
                amount, predicted = 1.0 if mistaken else 0.0, entry.predicted
                behind = model.folded() - entry.updates
        else:
            self.counting.at_label(mistaken=mistaken, of_epoch=of_epoch)
        if not amount:
            model.labelled(partition)
            return
        version = model.version()  # before this label is counted
        model.labelled(partition)
        seen = model.restarts
        n = model.learn(partition, x, label, predicted, behind, amount)
        self.counting.updated(demoted=label == self.negative, tenant=entry.tenant)
        clock, raw = list(model.clock), Raw(entry.features)
        update = Update(
            model.epoch, n, clock, entry.id, label, predicted, raw, entry.source, version, behind, late=late,
            tenant=entry.tenant,
        )  # fmt: skip
        if amount != 1.0:
            update = replace(update, amount=amount)
        if seen:
            update = replace(update, restarts=seen)
        self._write(Outgoing("updates", partition, entry.id.encode(), encode(update)))

    def _unpark(self, record_id: str) -> None:
        """No example came for a parked label, and it may wait no longer."""
        entry = self.ledger.unpark(record_id)
        outcome = OUTCOMES["never came"][entry.carried is not None]
        if outcome == "applied_late" and entry.carried is not None:
            self._apply_late(entry.id, entry.offset, entry.label, entry.carried)
        else:
            self.decisions.append(Decision(outcome, entry.id, None, entry.offset, entry.label))

    # --- both -------------------------------------------------------------------------------------

    def _invalid(self, record: Record, fault: BadRecord) -> None:
        first = None
        stream: Stream = "labels" if record.topic == "labels" else "examples"
        if isinstance(record, Lost):
            fault, first = BadRecord(record.reason, record.detail), record.first
            self.facts.lost[stream] += record.offset + 1 - first
        at = record.offset
        self.decisions.append(
            Decision("invalid", None, None, at, first=first)
            if stream == "labels"
            else Decision("invalid", None, at, first=first)
        )
        self.facts.rejected[stream, fault.reason] += 1
        self._write(dead_letter(record, fault, self.state.limits.dead_letters))


def confidence(score: Score) -> float:
    """Distance from the decision: |score|, or how far the best class is ahead of the next."""
    if isinstance(score, float):
        return abs(score)
    best = sorted(score)[-2:]
    return best[-1] - best[0] if len(best) == 2 else 0.0
