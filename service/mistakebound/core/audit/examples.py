"""Examples and predictions of one partition: each prediction made again by the version that it carries."""

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from mistakebound.core.audit.asking import weight_of
from mistakebound.core.audit.compare import ULPS, differing, same_score, score_of, shown
from mistakebound.core.audit.dead_letters import DeadLetters
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.form import wrong_spelling
from mistakebound.core.audit.labels import Labels
from mistakebound.core.audit.made_again import MadeAgain
from mistakebound.core.audit.partition_steps import RecordedStep
from mistakebound.core.audit.probabilities import bucket_of, probability
from mistakebound.core.audit.reference_ledger import Waiting
from mistakebound.core.audit.replica import Replica
from mistakebound.core.audit.times import Times
from mistakebound.core.audit.topics_read import Ahead, Source
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.schema import Decision, Prediction, Version, read_prediction
from mistakebound.core.records import Lost, Record


class Examples:
    """Predictions, in their order, against what the examples come to."""

    def __init__(
        self,
        source: Source,
        replica: Replica,
        partition: int,
        labels: Labels,
        dead_letters: DeadLetters,
        findings: Findings,
    ) -> None:
        self._predictions = Ahead(source.read("predictions", partition))
        self._made_again = MadeAgain(lambda: source.read("predictions", partition))
        self._partition, self._dead_letters, self._findings = partition, dead_letters, findings
        self._newest, self._step_offset = -1, 0
        self._times = Times(findings)
        self._adopted: list[int] | None = None
        """First and last example of the step that was predicted before, in a transaction that was torn."""
        self._again: list[tuple[Record, Prediction, Features]] = []
        self.begin_epoch(replica, labels)

    def begin_epoch(self, replica: Replica, labels: Labels) -> None:
        """From now on this replica's model predicts."""
        self._model, self._labels = replica.model, labels
        self._tolerant = replica.model.kind.rounds(replica.model.settings.learner)

    def begin_step(self, step: RecordedStep) -> None:
        """A partition step begins."""
        self._step_offset, self._adopted = step.first_offset, step.adopted
        self._times.begin(step.time_ms)

    def end(self) -> None:
        """The walk is over."""
        self._times.judge()

    def next_prediction(self) -> int | None:
        """Offset of the next prediction that no example accounts for yet; None at the end."""
        record = self._next()
        return None if record is None else record.offset

    def take(self, record: Record) -> None:
        """An example record was consumed."""
        ledger = self._labels.ledger
        ledger.newest_source = record.offset
        if isinstance(record, Lost):
            self._dead_letters.expect_gap(record)
            self._labels.decided(Decision("invalid", None, record.offset, first=record.first))
            return
        try:
            record_id, raw, tenant = self._model.reader.example(record, self._labels.schemas.find)
            x = self._model.features(raw, tenant)
            self._dead_letters.check_fits(record, self._labels.recorded())
        except BadRecord as fault:
            self._dead_letters.expect(record, fault)
            self._labels.decided(Decision("invalid", None, record.offset))
            return
        second = Decision("duplicate", record_id, record.offset)
        back = ledger.forgotten_of_old(record_id) is not None
        if ledger.is_known(record_id) or (back and self._labels.is_brought_back(second)):
            self._labels.decided(second)
            return
        entry = self._predict(record, record_id, raw, tenant, x)
        self._labels.counts.of_tenant(tenant, predicted=1)
        ledger.waiting[record_id] = entry
        early = ledger.meet(record_id)
        if early is not None:
            self._labels.apply(entry, early.offset, early.label)

    # --- predictions ------------------------------------------------------------------------------

    def _predict(
        self, record: Record, record_id: str, raw: bytes, tenant: str | None, x: Features
    ) -> Waiting:
        """The example waits with what was published, right or wrong: that is what mistakes are counted on."""
        model = self._model
        score = model.score(x)
        made = Prediction(
            id=record_id,
            prediction=model.predict(score),
            score=score if isinstance(score, float) else UNSET,
            scores=UNSET if isinstance(score, float) else score,
            features=Raw(raw),
            source=record.offset,
            at=self._labels.ledger.now,
            model=model.version(),
            tenant=UNSET if tenant is None else tenant,
        )
        made = self._with_probability(self._asked(made, made.score), x)
        found = self._found(record.offset)
        if found is None:
            text = f"no prediction of {record_id!r}, examples-{self._partition} offset {record.offset}"
            self._findings.check("predictions", f"predictions-{self._partition}", False, text)
            recorded, offset = made, self.next_prediction() or self._newest + 1
        else:
            recorded, offset = self._compared(found, record, made, x)
        version, at, again_at = recorded.model, made.at, None
        if recorded.again is True:
            self._labels.ledger.made_again.add(record.offset)
            again_at = recorded.at
            if score_of(recorded) is None:  # its label was applied before, to the first one
                version = made.model
        elif recorded is not made and self._is_of_a_torn_step(recorded):
            at = recorded.at
        return Waiting(
            record_id, record.offset, at, recorded.prediction, version.epoch, raw, sum(version.updates), offset,
            self._step_offset, Beside.of(recorded), tenant, again_at,
        )  # fmt: skip

    def _asked(self, made: Prediction, score: float | UnsetType) -> Prediction:
        """The prediction, saying whether its label is asked for where labels are, by this score."""
        labels = self._model.settings.labels
        if labels.ask is None or score is UNSET:
            return replace(made, ask=UNSET, weight=UNSET)
        weight = weight_of(labels, made.id, score)
        return replace(made, ask=weight > 0, weight=weight or UNSET)

    def _with_probability(self, made: Prediction, x: Features) -> Prediction:
        """The prediction with its probability, where predictions have one, by the labels so far."""
        if not self._model.settings.predictions.probability or made.score is UNSET:
            return made
        table, bucket = self._labels.counts.epoch.reliability, bucket_of(made.score, self._model.size(x))
        millionths = probability(None if table is UNSET else table, bucket)
        return replace(made, bucket=bucket, probability=millionths / MILLION)

    def _found(self, source: int) -> tuple[Record, Prediction] | None:
        """The recorded prediction of this example; any of an earlier example is a duplicate, or was not due."""
        while (record := self._next()) is not None:
            recorded = read_prediction(record)
            if recorded.source > source:
                break
            self._pass_by(record, recorded)
            if recorded.source == source:
                return record, recorded
            its = f"{recorded.id!r}, examples-{self._partition} offset {recorded.source}"
            text = f"a prediction of {its}, that is there already or was not due"
            self._findings.check("predictions", record.location, False, text)
        return self._made_again.claim(source, self._newest)

    def _next(self) -> Record | None:
        """The next prediction that is not accounted for."""
        while (record := self._predictions.peek()) is not None and self._made_again.is_claimed(record):
            self._pass_by(record, read_prediction(record))
        return record

    def _pass_by(self, record: Record, recorded: Prediction) -> None:
        self._predictions.take()
        self._newest = record.offset
        torn = self._is_of_a_torn_step(recorded)
        if wrong := self._made_again.pass_by(recorded, of_torn_step=torn):
            self._findings.check("predictions", record.location, False, f"{recorded.id!r}: {wrong}")

    def _is_of_a_torn_step(self, recorded: Prediction) -> bool:
        """Whether it was made earlier or later than its example was counted."""
        adopted = self._adopted is not None and self._adopted[0] <= recorded.source <= self._adopted[-1]
        return recorded.again is True or adopted

    def settle(self, replica: Replica, before: Version | None = None) -> None:
        """Make the predictions again that were made after their step: the fold has not passed their version yet.

        `before`: only those that were made before a step began with this version; the fold cannot come back to them.
        """
        later = []
        for record, recorded, x in sorted(self._again, key=_age):
            if before is not None and not _precedes(recorded.model, before):
                later.append((record, recorded, x))
                continue
            version, model = recorded.model, replica.model
            here = version.epoch == replica.number and len(version.updates) == model.partitions
            reached = [here and replica.reach(q, n) for q, n in enumerate(version.updates)]
            here = all(reached)
            if here and version.clock is not None:
                model.clock = list(version.clock)
            text = f"{recorded.id!r}: predicted again by the version {version.epoch}:{version.updates}"
            if here and (was := score_of(recorded)) is not None:
                score = model.score(x)
                here = same_score(was, score, ulps=ULPS if self._tolerant else 0)
                text += f" with the score {shown(was)}, should be {shown(score)}"
                here = here and model.predict(was) == recorded.prediction
            self._findings.check("predictions", record.location, here, text)
        self._again = later

    def _compared_in_part(
        self, record: Record, recorded: Prediction, made: Prediction, x: Features
    ) -> list[str]:
        """Of a torn step: what does not depend on the model. The rest is looked at when its version is reached, or known."""
        leave = ("score", "scores", "prediction", "at", "model", "again", "probability", "bucket")
        made = self._asked(made, recorded.score)
        wrong = [more] if (more := differing(recorded, made, leave=leave)) else []
        if recorded.again is True:
            if recorded.at < made.at:
                wrong.append(f"at is {recorded.at}, should be at least {made.at}")
            self._again.append((record, recorded, x))
        else:
            self._findings.note(
                "predictions of a torn transaction, whose version is gone, were taken on trust"
            )
        return wrong

    def _compared(
        self, found: tuple[Record, Prediction], example: Record, made: Prediction, x: Features
    ) -> tuple[Prediction, int]:
        record, recorded = found
        was, score, wrong = score_of(recorded), score_of(made), []
        assert score is not None
        same = same_score(was, score)
        if self._is_of_a_torn_step(recorded) and (recorded.again is True or recorded.model != made.model):
            wrong = self._compared_in_part(record, recorded, made, x)
            made = recorded
        elif not same and self._tolerant and was is not None and same_score(was, score, ulps=ULPS):
            self._findings.note(f"scores within {ULPS} units in the last place, not equal to the bit")
            made = replace(made, prediction=self._model.predict(was))
            made = self._asked(made, was) if isinstance(was, float) else made
        elif not same:
            wrong.append(f"score is {shown(was)}, should be {shown(score)}")
        # Another order of the records may have had other labels before it.
        leave = ("score", "scores", *("probability",) * self._is_of_a_torn_step(recorded))
        if more := differing(recorded, made, leave=leave):
            wrong.append(more)
        if (record.key, record.headers) != (example.key, example.headers):
            wrong.append("its key and headers are not the example's")
        if strange := wrong_spelling(record, recorded):
            wrong.append(strange)
        if not self._is_of_a_torn_step(recorded):  # whose predictions another transaction wrote
            self._times.see(record)
        text = (
            f"{recorded.id!r}: {'; '.join(wrong)} (by outcomes-{self._partition} offset {self._step_offset})"
        )
        self._findings.check("predictions", record.location, not wrong, text)
        return recorded, record.offset


def _age(found: tuple[Record, Prediction, Features]) -> tuple[int, int]:
    """Versions of one partition's predictions only grow; so they are in order by this."""
    version = found[1].model
    return version.epoch, sum(version.updates)


def _precedes(version: Version, other: Version) -> bool:
    """Whether a fold comes by `version` before it passes `other`, or at it."""
    if version.epoch != other.epoch:
        return version.epoch < other.epoch
    return all(mine <= its for mine, its in zip(version.updates, other.updates, strict=False))
