"""The averaged perceptron (Freund & Schapire 1999; lecture 6, "Averaged perceptron").

It updates exactly as the perceptron does, and predicts with the sum a of the weights it had after
each labelled example (a <- a + w in the notes; dividing by their number would change no sign). With
T labelled examples, and g the number of the example that caused an update,

    a = (T + 1) * theta - kappa,    theta = sum of y*x,    kappa = sum of g*y*x,

so nothing is added up while no mistake is made. The mistake bound speaks of the updates only.

With a window, or after a restart, both sums are those of the updates that count: an update that was left out leaves
the average too, as if learning had begun after it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mistakebound.core.learners.claim import euclidean_norm, separable, undeclared_margin
from mistakebound.core.learners.kind import AVERAGES, GROWS, Kind
from mistakebound.core.learners.multiclass_perceptron import many_classes
from mistakebound.core.linear.parts import Parts
from mistakebound.core.linear.restarts import restarts_of
from mistakebound.core.linear.theta import Theta, errs, euclidean, predict, saturate
from mistakebound.core.linear.window import window_of
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


class AveragedPerceptron:
    """A version is (updates, clock): the same theta has another average after each labelled example."""

    averaged = True

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        self._rate = settings.learning_rate
        self._tie = settings.tie
        self.window = window_of(settings, partitions)
        self.restarts = restarts_of(settings, partitions)
        self._theta, self._kappa = (
            Theta(partitions, window=self.window, restarts=self.restarts) for _ in range(2)
        )
        parts = Parts(
            {
                "restarts": self.restarts,
                "theta": self._theta,
                "kappa": self._kappa,
                "folded": self.window,
            }
        )
        self.begin, self.rollback = parts.begin, parts.rollback
        self.dump, self.load = parts.dump, parts.load
        self.digest, self.length = self._theta.digest, euclidean

    def score(self, x: Features, clock: int) -> float:
        """a.x over k features, T = `clock`."""
        theta, kappa = self._theta.sums, self._kappa.sums
        times, total = float(clock + 1), 0.0
        for name, value in x:
            coordinate = theta.get(name)
            if coordinate is not None:
                total += (times * coordinate - kappa[name]) * value
        return saturate(self._rate * total)

    def size(self, x: Features, clock: int) -> float:
        """The sum of the sizes of the terms of `score`."""
        theta, kappa = self._theta.sums, self._kappa.sums
        times, total = float(clock + 1), 0.0
        for name, value in x:
            coordinate = theta.get(name)
            if coordinate is not None:
                total += abs((times * coordinate - kappa[name]) * value)
        return saturate(self._rate * total)

    def predict(self, score: float) -> bool:
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it errs on this label, predicted class), by theta, as the perceptron."""
        score = saturate(self._theta.dot(x))
        return 1.0 if errs(score, positive, self._tie) else 0.0, predict(score, self._tie)

    def judge(self, x: Features, positive: bool, clock: int) -> tuple[float, bool, bool]:
        """`decide`, and the class that `score` would publish, in one pass over the features: T = `clock`."""
        theta, kappa = self._theta.sums, self._kappa.sums
        times, plain, total = float(clock + 1), 0.0, 0.0
        for name, value in x:
            coordinate = theta.get(name)
            if coordinate is not None:
                plain += coordinate * value
                total += (times * coordinate - kappa[name]) * value
        plain, tie = saturate(plain), self._tie
        published = predict(saturate(self._rate * total), tie)
        return 1.0 if errs(plain, positive, tie) else 0.0, predict(plain, tie), published

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """theta += amount*y*x, kappa += g*amount*y*x with g = `clock`."""
        sign = amount if positive else -amount
        if self.window is not None:
            oldest = self.window.advance(partition)
            if oldest:
                self._theta.leave_out(partition, oldest)
                self._kappa.leave_out(partition, oldest)
        self._theta.add(partition, x, sign)
        self._kappa.add(partition, x, sign * clock)

    def theta(self) -> Mapping[str, float]:
        return self._theta.sums

    def weights(self) -> Mapping[str, float]:
        """Theta times the learning rate: the plain hypothesis."""
        return {name: self._rate * value for name, value in self._theta.sums.items()}

    def averages(self, clock: int) -> Mapping[str, float]:
        """a times the learning rate, T = `clock`: what a score is the product with."""
        times, kappa = float(clock + 1), self._kappa.sums
        return {
            name: saturate(self._rate * (times * value - kappa[name]))
            for name, value in self._theta.sums.items()
        }


KIND = Kind(
    name="averaged-perceptron",
    order=20,
    make=AveragedPerceptron,
    many=partial(many_classes, "averaged-perceptron", True),
    source="Freund & Schapire 1999; lecture 6",
    bound="(R/gamma)^2",
    bounds="updates",
    shows="averaged weights, summed over the labels as scores are",
    scores_with=AveragedPerceptron.averages,
    parameters=("learning_rate", "tie", "gamma", "window", "on_refuted", "cost_sensitive"),
    no_issued=AVERAGES,
    no_ask=GROWS,
    no_probability=None,
    size=AveragedPerceptron.size,
    claim=separable,
    undeclared=undeclared_margin,
    norm=euclidean_norm,
    sums=True,
)
