"""A version space: the concepts that agree with every update, as packed bits, one row per partition.

Intersection commutes, so partitions fold in any order. An empty space stays empty: no concept of the class
agrees with the labels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mistakebound.core.bounds import missing_sets
from mistakebound.core.journal import Journal
from mistakebound.core.learners.claim import Claim, Run, lacked
from mistakebound.core.learners.concepts import Truths, named, variables_of
from mistakebound.core.learners.kind import ONE_CONCEPT, STRIKES_OUT, VOTES, Kind, Unmet
from mistakebound.core.linear.theta import active
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

Bits = npt.NDArray[np.uint8]

SHOWN = 10
"""Concepts that `weights` spells out."""


class VersionSpace:
    """Rows [P] of packed bits, and their intersection: a learner that has yet to score and to decide."""

    averaged = False
    window = None
    restarts = None

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        """All concepts of the class that the settings name. Raises ValueError for none, or too many."""
        variables = variables_of(settings) or ()
        self.concepts = concepts = named(settings.concepts or "", variables)
        self._bit = {name: 1 << place for place, name in enumerate(variables)}
        self._all: Bits = np.packbits(np.ones(concepts.size, dtype=np.bool_))
        self._rows: list[Bits] = [self._all] * partitions
        self._whole = self._all
        self.length = active
        self._journal: Journal[list[Bits]] = Journal()
        self.begin()

    def values(self, x: Features) -> Truths:
        """Truth of every concept on x."""
        active = 0
        for name, value in x:
            if value != 0.0:
                active |= self._bit[name]
        return self.concepts.values(active)

    def members(self) -> Truths:
        """Which concepts are left."""
        return np.unpackbits(self._whole, count=self.concepts.size).astype(np.bool_)

    def size(self) -> int:
        """How many concepts are left."""
        return int(np.count_nonzero(self.members()))

    def predict(self, score: float) -> bool:
        return score > 0.0

    def shrinks(self, x: Features, positive: bool) -> bool:
        """Whether this label would remove a concept."""
        return bool(np.any(self.members() & (self.values(x) != positive)))

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """Keep only what agrees with this label."""
        agreeing = np.packbits(self.values(x) == positive)
        self._rows[partition] = self._rows[partition] & agreeing
        self._whole = self._whole & agreeing

    def begin(self, undoable: bool = True) -> None:
        """What follows can be rolled back. Rows are replaced, never changed, so keeping them is free."""
        self._journal.begin()
        self._journal.note(list(self._rows))

    def rollback(self) -> None:
        (self._rows,) = self._journal.take_back()
        self._meet()

    def _meet(self) -> None:
        self._whole = self._all
        for row in self._rows:
            self._whole = self._whole & row

    def dump(self) -> list[bytes]:
        """The packed bits of each partition."""
        return [row.tobytes() for row in self._rows]

    def load(self, rows: Sequence[bytes]) -> None:
        loaded = [np.frombuffer(row, dtype=np.uint8) & self._all for row in rows]
        if len(loaded) != len(self._rows) or any(row.shape != self._all.shape for row in loaded):
            raise ValueError("the version space has another size")
        self._rows = loaded
        self.begin()
        self._meet()

    def digest(self) -> str:
        """SHA-256 of the packed bits."""
        return sha256(self._whole.tobytes()).hexdigest()

    def theta(self) -> Mapping[str, float]:
        """Nothing is added up here."""
        return {}

    def weights(self) -> Mapping[str, Any]:
        """The first concepts left, in words."""
        return {self.concepts.spelled(int(place)): 1.0 for place in np.flatnonzero(self.members())[:SHOWN]}


# --- what the learners on a version space share -----------------------------------------------------------


def nameable(settings: LearnerSettings) -> Iterator[Unmet]:
    """`Kind.requires`: there is such a class, and not too large a one."""
    spec, variables = settings.concepts, variables_of(settings)
    if spec is not None and variables is not None:
        try:
            named(spec, variables)
        except ValueError as error:
            yield Unmet("learner.concepts", str(error), "See `mistakebound learners --concepts`")


def finite(theorem: str, bound: Callable[[int], float]) -> Callable[[Run], Claim | None]:
    """`Kind.claim` of a bound by the number of concepts in the class."""

    def claim(run: Run) -> Claim | None:
        size: int = run.learner.concepts.size
        return Claim(theorem, missing_sets(bound(size), run.missing), f"|C| = {size}{lacked(run)}")

    return claim


version_space_kind = partial(
    Kind,
    shows="concepts that agree with every update",
    needs=("concepts", "variables"),
    requires=nameable,
    boolean=True,
    no_window=STRIKES_OUT,
    no_ask=VOTES,
    no_cross=ONE_CONCEPT,
    no_probability=VOTES,
    concepts_left=VersionSpace.size,
)
