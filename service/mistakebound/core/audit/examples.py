"""Examples and predictions of one partition: each prediction made again by the version that it carries."""

from msgspec import UNSET, Raw

from mistakebound.core.audit.compare import ULPS, differing, same_score, score_of, shown
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.labels import Labels
from mistakebound.core.audit.reference_ledger import Waiting
from mistakebound.core.audit.replica import Replica
from mistakebound.core.audit.source import Ahead, Source, place
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.schema import Decision, Prediction, read_prediction
from mistakebound.core.records import Record

OVERSIZE = "oversize"


class Examples:
    """Predictions and dead letters, in their order, against what the inputs come to."""

    def __init__(
        self, source: Source, replica: Replica, partition: int, labels: Labels, findings: Findings
    ) -> None:
        self._predictions = Ahead(source.read("predictions", partition))
        self._dead = Ahead(source.read("dead-letters", partition))
        self._dead_whole = not source.begins_late("dead-letters", partition)
        self._partition, self._findings = partition, findings
        self._newest = -1
        self.step_offset = 0
        """First `outcomes` offset of the step."""
        self.begin_epoch(replica, labels)

    def begin_epoch(self, replica: Replica, labels: Labels) -> None:
        """From now on this model predicts."""
        self._model, self._labels = replica.model, labels
        self._tolerant = replica.model.kind.rounds(replica.model.settings.learner)

    def next_prediction(self) -> int | None:
        """Offset of the next prediction that is not accounted for; None where there is none."""
        record = self._predictions.peek()
        return None if record is None else record.offset

    def take(self, record: Record) -> None:
        """An example record was consumed."""
        ledger = self._labels.ledger
        ledger.newest_source = record.offset
        try:
            record_id, raw = self._model.reader.example(record)
            x = self._model.features(raw)
            self.fits(record, self._labels.recorded())
        except BadRecord as fault:
            self.dead(record, fault.reason)
            self._labels.decided(Decision("invalid", None, record.offset))
            return
        if ledger.is_known(record_id):
            self._labels.decided(Decision("duplicate", record_id, record.offset))
            return
        entry = self._predict(record, record_id, raw, x)
        ledger.waiting[record_id] = entry
        early = ledger.meet(record_id)
        if early is not None:
            self._labels.apply(entry, early.offset, early.label)

    def fits(self, record: Record, told: Decision | None) -> None:
        """Only the log knew how large its records could be: a record too large for it is believed.

        `told` is the next recorded decision. Raises BadRecord.
        """
        if told is None or told.outcome != "invalid":
            return
        if record.offset != (told.label_offset if record.topic == "labels" else told.source):
            return
        letter = self._dead.peek()
        if letter is not None and dict(letter.headers).get("mistakebound.reason") == OVERSIZE.encode():
            self._findings.note(f"{record.topic} refused as too large for the log were taken on trust")
            raise BadRecord(OVERSIZE, "as recorded")

    # --- predictions ------------------------------------------------------------------------------

    def _predict(self, record: Record, record_id: str, raw: bytes, x: Features) -> Waiting:
        """The example waits with what was published, be it right or wrong: mistakes are counted on that."""
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
        )
        found = self._found(record.offset)
        if found is None:
            self._findings.check(
                "predictions",
                f"predictions-{self._partition}",
                False,
                f"no prediction of {record_id!r}, examples-{self._partition} offset {record.offset}",
            )
            told, offset = made, self.next_prediction() or self._newest + 1
        else:
            told, offset = self._compared(found, record, made)
        return Waiting(
            record_id,
            record.offset,
            self._labels.ledger.now,
            told.prediction,
            told.model.epoch,
            raw,
            sum(told.model.updates),
            offset,
            self.step_offset,
        )

    def _found(self, source: int) -> tuple[Record, Prediction] | None:
        """The prediction of this example; those of examples before it are there once too often."""
        while (record := self._predictions.peek()) is not None:
            told = read_prediction(record)
            if told.source > source:
                return None
            self._predictions.take()
            self._newest = record.offset
            if told.source == source:
                return record, told
            self._findings.check(
                "predictions",
                place(record),
                False,
                f"a prediction of {told.id!r}, examples-{self._partition} offset {told.source}, that is there "
                "already or was not due",
            )
        return None

    def _compared(
        self, found: tuple[Record, Prediction], example: Record, made: Prediction
    ) -> tuple[Prediction, int]:
        record, told = found
        score = score_of(made)
        assert score is not None
        wrong = ""
        if not same_score(score_of(told), score):
            near = self._tolerant and same_score(score_of(told), score, ulps=ULPS)
            if near:
                self._findings.note(f"scores within {ULPS} units in the last place, not equal to the bit")
                self_told = score_of(told)
                assert self_told is not None
                made = _with(made, self._model.predict(self_told))
            else:
                wrong = f"score is {shown(score_of(told))}, should be {shown(score)}"
        more = differing(told, made, leave=("score", "scores"))
        if (record.key, record.headers) != (example.key, example.headers):
            more += "; its key and headers are not the example's"
        wrong = "; ".join(text for text in (wrong, more) if text)
        self._findings.check("predictions", place(record), not wrong, f"{told.id!r}: {wrong}")
        return told, record.offset

    # --- dead letters -----------------------------------------------------------------------------

    def dead(self, record: Record, reason: str) -> None:
        """A record that could not be read must be the next dead letter."""
        where = (record.topic, record.partition, record.offset)
        while (letter := self._dead.peek()) is not None:
            told = {
                name: (value or b"").decode(errors="replace")
                for name, value in letter.headers
                if name.startswith("mistakebound.")
            }
            at = told.get("mistakebound.offset", "")
            its_own = (told.get("mistakebound.topic"), at) == (record.topic, str(record.offset))
            if its_own:
                self._dead.take()
                self._findings.check(
                    "dead letters",
                    place(letter),
                    told.get("mistakebound.reason") == reason and _content(letter, record),
                    lambda told=told: (
                        f"reason {told.get('mistakebound.reason')!r} or its content is wrong; "  # type: ignore[misc]
                        f"{place(record)} is {reason}"
                    ),
                )
                return
            break
        if not self._dead_whole:
            self._findings.note("dead letters that the log no longer keeps")
            return
        self._findings.check(
            "dead letters", place(record), False, f"no dead letter of {where} ({reason}) comes next"
        )


def _with(made: Prediction, prediction: object) -> Prediction:
    from msgspec.structs import replace

    return replace(made, prediction=prediction)


def _content(letter: Record, record: Record) -> bool:
    """Whether key and value are the record's, where they were not cut."""
    cut = {name for name, _ in letter.headers if name.startswith("mistakebound.")}
    key = "mistakebound.key-length" in cut or letter.key == record.key
    value = "mistakebound.value-length" in cut or letter.value == record.value
    return key and value
