"""Halving: predict with the majority of the concepts left (lecture 6, "The Halving algorithm").

Positive needs a strict majority. On a mistake, keep what agrees with the label: at least half goes, so at
most log2 |C| mistakes.
"""

import numpy as np

from mistakebound.core import bounds
from mistakebound.core.learners.version_space import VersionSpace, finite, version_space_kind
from mistakebound.core.messages.features import Features


class Halving(VersionSpace):
    """Predicts negative once no concept is left, and then has nothing to learn."""

    def score(self, x: Features, clock: int = 0) -> float:
        """Concepts left that say positive, less those that say negative."""
        left, values = self.members(), self.values(x)
        return float(np.count_nonzero(left & values) - np.count_nonzero(left & ~values))

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it errs and has something left to remove, predicted class)."""
        predicted = self.score(x) > 0.0
        return float(predicted != positive and self.shrinks(x, positive)), predicted


KIND = version_space_kind(
    name="halving",
    order=230,
    make=Halving,
    source="lecture 6, Halving",
    bound="log2 |C|",
    parameters=("concepts", "variables"),
    claim=finite("Halving", bounds.halving),
)
