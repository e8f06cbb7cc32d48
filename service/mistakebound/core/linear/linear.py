"""Theta: the sum of y*x over the updates, and the weights that a learner derives from it.

Rows are kept per partition and folded in that partition's log order; a coordinate is the sum of its
rows in partition order; a score is the sum over the record's features in the record's order. All of
it by one float64 addition after the other (numpy's sum and dot, and Python 3.12's sum, round
differently), so two replicas at the same version hold the same bits.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mistakebound.core.linear.theta import (
    Theta,
    Tie,
    digest,
    errs,
    euclidean,
    identity,
    predict,
    saturate,
    signed,
)
from mistakebound.core.messages.features import Features

if TYPE_CHECKING:
    from mistakebound.core.linear.window import Window


class Linear:
    """A learner that is one theta, one weight function, a scale and a threshold.

    score = scale * (w.x) - threshold. Kinds of it differ in what is passed here; `service/mistakebound/core/learners` has
    one page for each. The scale is applied to the sum: scaled weights would round differently, and a score
    of 0 would not stay one.
    """

    averaged = False

    def __init__(
        self,
        partitions: int,
        tie: Tie,
        *,
        weight: Callable[[float], float] = identity,
        threshold: float = 0.0,
        scale: float = 1.0,
        must: Callable[[float, bool], bool] | None = None,
        step: Callable[[bool], float] = signed,
        length: Callable[[Features], float] = euclidean,
        window: "Window | None" = None,
    ) -> None:
        """`must(score, positive)`: whether to update; default: when the tie rule says that it errs.

        `window`: which updates count; default all.
        """
        self._theta = Theta(partitions, weight) if window is None else window.theta(weight)
        self.window = window
        self._tie = tie
        self._scale = scale
        self._threshold = threshold
        self._must = must if must is not None else lambda score, positive: errs(score, positive, tie)
        self._step = step
        self.length = length
        self.changes = 0
        """Grows with every change of theta."""
        self._scored: tuple[Features, int, float] = ((), -1, 0.0)
        """The newest published score, of which features, after how many changes."""

    def score(self, x: Features, clock: int = 0) -> float:
        """scale * (w.x) - threshold over k features."""
        score = saturate(self._scale * self._theta.dot(x) - self._threshold)
        self._scored = x, self.changes, score
        return score

    def predict(self, score: float) -> bool:
        """The class of a score."""
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[bool, bool]:
        """(must be updated on this label, predicted class), by the current weights."""
        scored, changes, score = self._scored
        if scored is not x or changes != self.changes:
            score = self.score(x)
        return self._must(score, positive), predict(score, self._tie)

    def fold(
        self,
        partition: int,
        x: Features,
        positive: bool,
        clock: int = 0,
        predicted: bool | None = None,
    ) -> None:
        """theta += y*x."""
        self.changes += 1
        if self.window is not None:
            self.window.advance(partition, (self._theta,))
        self._theta.add(partition, x, self._step(positive))

    def begin(self, undoable: bool = True) -> None:
        """What follows can be rolled back, if it is `undoable`."""
        self._theta.begin(undoable)
        if self.window is not None:
            self.window.begin()

    def rollback(self) -> None:
        """Undo what was folded since `begin`, to the bit."""
        self.changes += 1
        if self.window is not None:
            self.window.rollback()
        self._theta.rollback()

    def dump(self) -> dict[str, Any]:
        """Rows [P, features] of theta; with a window its blocks, and how many updates were folded."""
        folded = {} if self.window is None else {"folded": self.window.folded}
        return {"theta": self._theta.dump()} | folded

    def load(self, state: Mapping[str, Any]) -> None:
        """Become what `dump` gave."""
        self.changes += 1
        if self.window is not None:
            self.window.load(state["folded"])
        self._theta.load(state["theta"])

    def digest(self) -> str:
        """SHA-256 of theta."""
        return digest(self._theta.sums)

    def theta(self) -> Mapping[str, float]:
        """Theta by feature name."""
        return self._theta.sums

    def weights(self) -> Mapping[str, float]:
        """Weights by feature name, scaled."""
        if self._scale == 1.0:
            return self._theta.weights
        return {name: saturate(self._scale * value) for name, value in self._theta.weights.items()}
