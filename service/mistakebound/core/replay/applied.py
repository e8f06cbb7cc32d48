"""The labelled examples of a replay in the order in which their labels were applied, read off its steps."""

from collections.abc import Iterator

from msgspec import UNSET, json

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.schema import Decision, Prediction, read_outcomes, read_prediction
from mistakebound.core.model.model import Model
from mistakebound.core.records import Record
from mistakebound.core.replay.comparators import Judged
from mistakebound.core.replay.replay import Row
from mistakebound.core.step.step import Step


class Pairs:
    """Predictions that wait for their label."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int | None], Prediction] = {}

    def match(self, step: Step) -> Iterator[tuple[Decision, Prediction | None]]:
        """Each label that the step applied, and the prediction that waited for it; a late label finds none."""
        for output in step.transaction.outputs:
            record = Record(output.topic, output.partition, 0, 0, output.key, output.value)
            if output.topic == "predictions":
                prediction = read_prediction(record)
                self._waiting[output.partition, prediction.source] = prediction
            elif output.topic == "outcomes":
                for decision in read_outcomes(record).decisions:
                    ended = decision.outcome not in ("duplicate", "invalid")
                    waited = self._waiting.pop((output.partition, decision.source), None) if ended else None
                    if decision.outcome in ("applied", "applied_late"):
                        yield decision, waited


class Applied:
    """Shown every step of a replay with two classes, it keeps what was judged, `judged`, in order.

    Labels applied late are left out: the scores of their predictions are not known. So is what an older epoch predicted
    that this one's settings do not take.
    """

    def __init__(self, model: Model) -> None:
        self.judged: list[Judged] = []
        self._model, self._pairs = model, Pairs()

    def see(self, step: Step) -> None:
        """Judge the predictions whose labels this step applied."""
        classes, positive = self._model.classes, self._model.classes[0]
        for decision, waited in self._pairs.match(step):
            if decision.outcome == "applied" and waited is not None and decision.label in classes:
                try:
                    x = self._model.features(bytes(waited.features), _tenant(waited))
                except BadRecord:
                    continue
                score = 0.0 if waited.score is UNSET else waited.score
                self.judged.append(
                    Judged(x, decision.label == positive, score, waited.prediction == positive)
                )


class AppliedRows:
    """Shown every step of a replay, it keeps the labelled examples as rows, `rows`, in the order applied."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._pairs = Pairs()

    def see(self, step: Step) -> None:
        """Keep the examples whose labels this step applied; a late label carries its features."""
        for decision, waited in self._pairs.match(step):
            own = decision.outcome == "applied_late" or waited is None
            raw = decision.features if own or waited is None else waited.features
            if decision.id is not None:
                assert raw is not UNSET
                tenant = decision.tenant if own or waited is None else _tenant(waited)
                self.rows.append(Row(decision.id, json.decode(raw), decision.label, tenant=tenant))


def _tenant(prediction: Prediction) -> str | None:
    return None if prediction.tenant is UNSET else prediction.tenant
