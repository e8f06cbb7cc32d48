"""The learner that is one theta. Its kinds differ in how a weight follows from theta, and in when they update."""

from collections.abc import Callable, Mapping
from typing import Any

from mistakebound.core.linear.parts import Parts
from mistakebound.core.linear.restarts import restarts_of
from mistakebound.core.linear.theta import Theta, Tie, errs, euclidean, identity, predict, saturate, signed
from mistakebound.core.linear.window import window_of
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


class Linear:
    """score = scale * (w.x) - threshold. `core/learners` has a page for each kind, which says what is passed here.

    The scale is applied to the sum: scaled weights would round differently, and a score of 0 would not stay 0.
    """

    averaged = False

    def __init__(
        self,
        settings: LearnerSettings,
        partitions: int,
        *,
        tie: Tie | None = None,
        weight: Callable[[float], float] = identity,
        threshold: float = 0.0,
        scale: float = 1.0,
        amount: Callable[[float, Features, bool], float] | None = None,
        step: Callable[[bool], float] = signed,
        length: Callable[[Features], float] = euclidean,
    ) -> None:
        """Of `settings` it reads `window`, `on_refuted` and, unless one is given, `tie`.

        `amount(score, x, positive)`: how much of y*x to add; default: all when the tie rule says that it errs.
        """
        self.window = window_of(settings, partitions)
        self.restarts = restarts_of(settings, partitions)
        self._theta = Theta(partitions, weight, self.window, self.restarts)
        parts = Parts({"restarts": self.restarts, "theta": self._theta, "folded": self.window}, self._changed)
        self.begin, self.rollback, self.dump, self.load = parts.begin, parts.rollback, parts.dump, parts.load
        self.digest = self._theta.digest
        self._tie = tie or settings.tie
        self._scale = scale
        self._threshold = threshold
        self._amount = amount
        self._step = step
        self.length = length
        self.changes = 0
        """Grows with every change of theta."""
        if self.restarts is not None:
            self.restarts.tell.append(self._changed)
        self._scored: tuple[Features, int, float] = ((), -1, 0.0)
        """The newest published score, of which features, after how many changes."""

    def score(self, x: Features, clock: int = 0) -> float:
        """scale * (w.x) - threshold over k features."""
        score = saturate(self._scale * self._theta.dot(x) - self._threshold)
        self._scored = x, self.changes, score
        return score

    def size(self, x: Features, clock: int = 0) -> float:
        """The sum of the sizes of the terms of `score`, the threshold's among them."""
        return saturate(self._scale * self._theta.size(x) + abs(self._threshold))

    def predict(self, score: float) -> bool:
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(how much to add on this label, predicted class), by the current weights."""
        scored, changes, score = self._scored
        if scored is not x or changes != self.changes:
            score = self.score(x)
        tie = self._tie
        if self._amount is not None:
            return self._amount(score, x, positive), predict(score, tie)
        return 1.0 if errs(score, positive, tie) else 0.0, predict(score, tie)

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """theta += amount*y*x."""
        self.changes += 1
        if self.window is not None:
            oldest = self.window.advance(partition)
            if oldest:
                self._theta.leave_out(partition, oldest)
        self._theta.add(partition, x, amount * self._step(positive))

    def _changed(self) -> None:
        self.changes += 1

    def theta(self) -> Mapping[str, float]:
        return self._theta.sums

    def weights(self) -> Mapping[str, float]:
        """Weights by feature name, scaled."""
        if self._scale == 1.0:
            return self._theta.weights
        return {name: saturate(self._scale * value) for name, value in self._theta.weights.items()}
