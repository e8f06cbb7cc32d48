"""What a partition step does with an example: it is predicted at once, and waits for its label."""

from msgspec import UNSET, Raw, UnsetType

from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision, Prediction, encode
from mistakebound.core.records import Outgoing, Record
from mistakebound.core.step.draft import Draft
from mistakebound.core.step.labels import Labels


class Examples:
    """The examples of one partition step."""

    def __init__(self, draft: Draft, labels: Labels) -> None:
        self.draft, self.labels = draft, labels
        self.model, self.ledger = draft.model, draft.ledger
        self._more_said = draft.more_said

    def take(self, record: Record, offset: int, time_ms: int) -> None:
        """Predict it; then the label that came before it is applied, if there is one. Raises BadRecord."""
        draft, model, ledger = self.draft, self.model, self.ledger
        record_id, raw, tenant = draft.reader.example(record, draft.schemas.find)
        x = model.features(raw, tenant)
        draft.sizes.check(record, raw)
        if record_id in ledger.waiting or record_id in ledger.remembered:
            draft.decisions.append(Decision("duplicate", record_id, offset))
            return
        score = model.score(x)
        predicted = model.predict(score)
        one: float | UnsetType = UNSET
        many: list[float] | UnsetType = UNSET
        if isinstance(score, float):
            one, sure = score, abs(score)
        else:
            many, sure = score, ahead(score)
        prediction = Prediction(
            id=record_id,
            prediction=predicted,
            score=one,
            scores=many,
            features=Raw(raw),
            source=offset,
            at=ledger.stream_time,
            model=model.encoded_version(),  # type: ignore[arg-type] # the version's JSON, kept while it is the same
            tenant=UNSET if tenant is None else tenant,
        )
        beside: Beside | None = None
        if self._more_said.anything and one is not UNSET:
            prediction = self._more_said.said(prediction, one, x)
            if prediction.ask is not UNSET:
                draft.facts.asked[prediction.ask] += 1
            beside = Beside.of(prediction)
        draft.write(Outgoing("predictions", draft.partition, record.key, encode(prediction), record.headers))
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
        self.wait(entry)
        draft.facts.margins.append(sure)
        if time_ms >= 0:
            draft.facts.predicted_record_ms.append(time_ms)
        if record_id in ledger.parked:
            self.labels.unpark_for(entry)

    def wait(self, entry: Waiting) -> None:
        """Count a prediction, whose example now waits for its label."""
        self.ledger.wait(entry)
        if entry.tenant is not None:
            self.draft.counting.predicted(entry.tenant)
        if entry.predicted is not None:
            self.draft.facts.predicted[spelled(entry.predicted)] += 1


def ahead(scores: list[float]) -> float:
    """How far the best class is ahead of the next."""
    best = sorted(scores)[-2:]
    return best[-1] - best[0] if len(best) == 2 else 0.0
