"""River's perceptron, as all contenders on River have it: one model in the process's memory, and what it comes to."""

from typing import Any

from river.linear_model import Perceptron

from tests.benchmarks.contenders.task import Clock


class RiverModel:
    """It predicts, learns, and counts; the clock is told how many examples are labelled."""

    def __init__(self, clock: Clock) -> None:
        self._model, self._clock = Perceptron(), clock
        self.predict = self._model.predict_one
        self.labelled = self.mistakes = 0

    def learn(self, features: Any, predicted: Any, label: Any) -> None:
        self.labelled += 1
        self._clock.reached(self.labelled)
        self.mistakes += predicted != label
        self._model.learn_one(features, label)
