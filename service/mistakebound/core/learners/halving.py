"""Halving: predict with the majority of the concepts left (lecture 6, "The Halving algorithm").

Positive needs a strict majority. On a mistake, keep what agrees with the label: at least half goes, so at
most log2 |C| mistakes.
"""

import numpy as np

from mistakebound.core import bounds
from mistakebound.core.learners.kind import STRIKES_OUT, Kind, of_learner
from mistakebound.core.learners.version_space import (
    VersionSpace,
    concepts_left,
    finite,
    nameable,
    space_of,
)
from mistakebound.core.messages.features import Features


class Halving:
    """Predicts negative once no concept is left, and then has nothing to learn."""

    averaged = False
    window = None

    def __init__(self, space: VersionSpace) -> None:
        self.space = space
        self.begin, self.rollback, self.digest = space.begin, space.rollback, space.digest
        self.dump, self.load, self.fold = space.dump, space.load, space.fold
        self.length, self.theta, self.weights = space.length, space.theta, space.weights

    def score(self, x: Features, clock: int = 0) -> float:
        """Concepts left that say positive, less those that say negative."""
        left, values = self.space.members(), self.space.values(x)
        return float(np.count_nonzero(left & values) - np.count_nonzero(left & ~values))

    def predict(self, score: float) -> bool:
        """The class of a score."""
        return score > 0.0

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it errs and has something left to remove, predicted class)."""
        predicted = self.score(x) > 0.0
        return float(predicted != positive and self.space.shrinks(x, positive)), predicted


KIND = Kind(
    name="halving",
    order=230,
    make=of_learner(lambda settings, partitions: Halving(space_of(settings, partitions))),
    source="lecture 6, Halving",
    bound="log2 |C|",
    shows="concepts that agree with every update",
    parameters=("concepts", "variables"),
    needs=("concepts", "variables"),
    requires=nameable,
    boolean=True,
    no_window=STRIKES_OUT,
    claim=finite("Halving", bounds.halving),
    concepts_left=concepts_left,
)
