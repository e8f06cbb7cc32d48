"""What a prediction says beside its class and score, where the settings have it: whether its label is asked for, a probability."""

from mistakebound.core.messages.features import Features
from mistakebound.core.messages.schema import Prediction
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.model.model import Model
from mistakebound.core.step.asking import asking
from mistakebound.core.step.probabilities import Probabilities


class MoreSaid:
    """Of the predictions of one partition step."""

    def __init__(self, model: Model, tallies: Tallies) -> None:
        """`tallies`: the partition's, whose labels make the probabilities."""
        settings = model.settings
        self._model = model
        self.asking = asking(settings.labels)
        self.probabilities: Probabilities | None = None
        if settings.predictions.probability:
            self.probabilities = Probabilities(tallies, model.classes[0])
        self.anything = self.asking is not None or self.probabilities is not None

    def said(self, prediction: Prediction, score: float, x: Features) -> Prediction:
        """The prediction of `x`, saying it."""
        if self.asking is not None:
            prediction = self.asking.said(prediction, score)
        if self.probabilities is not None:
            prediction = self.probabilities.said(prediction, score, self._model.size(x))
        return prediction
