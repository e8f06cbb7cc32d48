"""CON: predict with any concept that agrees with all labels so far (lecture 6, "Algorithm CON").

"Any" is the first that is left in a ranking: the class's own order, the most general first, or a seeded
shuffle of it. Every label that removes a concept is an update, a mistake or not. At most |C| - 1 mistakes.
"""

import numpy as np

from mistakebound.core import bounds
from mistakebound.core.learners.version_space import VersionSpace, finite, version_space_kind
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


class Con(VersionSpace):
    """Predicts negative once no concept is left."""

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        super().__init__(settings, partitions)
        order, seed = np.arange(self.concepts.size), settings.ranking_seed
        self._ranking = order if seed is None else np.random.default_rng(seed).permutation(order)

    def score(self, x: Features, clock: int = 0) -> float:
        """+1 where the first concept left is true of x, else -1; 0 when none is left."""
        left = self.members()[self._ranking]
        if not left.any():
            return 0.0
        return 1.0 if self.values(x)[self._ranking[int(np.argmax(left))]] else -1.0

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where this label removes a concept, predicted class)."""
        return float(self.shrinks(x, positive)), self.score(x) > 0.0


KIND = version_space_kind(
    name="con",
    order=220,
    make=Con,
    source="lecture 6, algorithm CON",
    bound="|C| - 1",
    parameters=("concepts", "variables", "ranking_seed"),
    claim=finite("CON", bounds.con),
)
