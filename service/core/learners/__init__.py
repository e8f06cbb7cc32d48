"""The learners: one algorithm, one file, one page, and one line in the table below."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from service.core.features import Features
from service.core.learners.averaged_perceptron import AveragedPerceptron
from service.core.learners.balanced_winnow import balanced_winnow
from service.core.learners.perceptron import perceptron
from service.core.learners.winnow import winnow
from service.settings import LearnerSettings

Rows = Mapping[str, Sequence[Mapping[str, float]]]


class Learner(Protocol):
    """What the step asks of a learner. It decides; it is told what to fold, and never decides again.

    Labels are truth values here: True is the positive class.
    """

    averaged: bool
    """Whether a version needs the clock beside the update counts."""

    def score(self, x: Features, clock: int) -> float:
        """Score of the published prediction, finite; `clock` = labelled examples known so far."""
        ...

    def predict(self, score: float) -> bool:
        """The class of a score."""
        ...

    def decide(self, x: Features, positive: bool) -> tuple[bool, bool]:
        """(whether the current hypothesis errs and must be updated, the class it predicts)."""
        ...

    def fold(self, partition: int, x: Features, positive: bool, clock: int) -> None:
        """Apply one logged update; `clock` = labelled examples known to its owner, this one included."""
        ...

    def begin(self) -> None:
        """A step begins: what follows can be rolled back."""
        ...

    def rollback(self) -> None:
        """Undo what was folded since `begin`, to the bit."""
        ...

    def dump(self) -> Rows:
        """The whole state as named rows [P, features]."""
        ...

    def load(self, rows: Rows) -> None:
        """Become what `dump` gave."""
        ...

    def theta(self) -> Mapping[str, float]:
        """Coordinates of theta by feature name."""
        ...

    def weights(self) -> Mapping[str, float]:
        """Weights by feature name, as `score` uses them for the plain hypothesis."""
        ...


KINDS: Mapping[str, Callable[[LearnerSettings, int], Learner]] = {
    "perceptron": perceptron,
    "averaged-perceptron": AveragedPerceptron,
    "winnow": winnow,
    "balanced-winnow": balanced_winnow,
}


def make(settings: LearnerSettings, partitions: int) -> Learner:
    """The learner that the settings name, before its first update."""
    return KINDS[settings.kind](settings, partitions)
