"""The labelled examples of a replay in the order in which their labels were applied, read off its steps."""

from msgspec import UNSET, Raw, json

from mistakebound.core.messages.schema import read_outcomes, read_prediction
from mistakebound.core.model.model import Model
from mistakebound.core.records import Outgoing, Record
from mistakebound.core.replay.comparators import Judged
from mistakebound.core.replay.replay import Row
from mistakebound.core.step.step import Step


class Applied:
    """Shown every step of a replay with two classes, it keeps what was judged, `judged`, in order.

    Labels applied late are left out: no score is known of their predictions.
    """

    def __init__(self, model: Model) -> None:
        self.judged: list[Judged] = []
        self._model = model
        self._waiting: dict[tuple[int, int], tuple[Raw, float, bool]] = {}

    def see(self, step: Step) -> None:
        """The step's predictions wait; those whose labels it applied are judged."""
        positive = self._model.classes[0]
        for output in step.transaction.outputs:
            if output.topic == "predictions":
                told = read_prediction(_record(output))
                score = 0.0 if told.score is UNSET else told.score
                self._waiting[output.partition, told.source] = (
                    told.features,
                    score,
                    told.prediction == positive,
                )
            elif output.topic == "outcomes":
                for decision in read_outcomes(_record(output)).decisions:
                    if decision.source is None or decision.outcome in ("duplicate", "invalid"):
                        continue
                    waiting = self._waiting.pop((output.partition, decision.source), None)
                    if decision.outcome == "applied" and waiting is not None:
                        raw, score, predicted = waiting
                        x = self._model.features(bytes(raw))
                        self.judged.append(Judged(x, decision.label == positive, score, predicted))


class AppliedRows:
    """Shown every step of a replay, it keeps the labelled examples as rows, `rows`, in the order applied."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._waiting: dict[tuple[int, int], Raw] = {}

    def see(self, step: Step) -> None:
        """The step's predictions wait; those whose labels it applied are rows."""
        for output in step.transaction.outputs:
            if output.topic == "predictions":
                told = read_prediction(_record(output))
                self._waiting[output.partition, told.source] = told.features
            elif output.topic == "outcomes":
                for decision in read_outcomes(_record(output)).decisions:
                    if decision.outcome == "applied" and decision.id is not None:
                        assert decision.source is not None
                        raw = self._waiting.pop((output.partition, decision.source))
                        self.rows.append(Row(decision.id, json.decode(raw), decision.label))
                    elif decision.outcome == "applied_late" and decision.id is not None:
                        assert decision.features is not UNSET
                        self.rows.append(Row(decision.id, json.decode(decision.features), decision.label))


def _record(output: Outgoing) -> Record:
    return Record(output.topic, output.partition, 0, 0, output.key, output.value)
