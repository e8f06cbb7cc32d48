"""Learning conjunctions by elimination (lecture 6, protocol III), and disjunctions by De Morgan.

The hypothesis is the conjunction of all literals that were true in every positive example learned from;
before the first one, of all literals there are. It changes only on a missed positive: at most n mistakes
for monotone conjunctions, n + 1 for general ones. A disjunction is a conjunction of negations, denied.

Counting is enough, and commutes: with theta_f the updates in which f was active, of n updates, the literal
f is in the hypothesis iff theta_f = n, and `not f` iff theta_f = 0. Features never seen cost nothing.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, Run, lacked
from mistakebound.core.learners.concepts import variables_of
from mistakebound.core.learners.kind import ONE_CONCEPT, STRIKES_OUT, VOTES, Kind, Unmet
from mistakebound.core.linear.parts import Parts
from mistakebound.core.linear.theta import Theta, active
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


class Literals(NamedTuple):
    """Which literals there are, and whether the conjunction is denied."""

    present: bool
    absent: bool
    denied: bool


CLASSES: Mapping[str, Literals] = {
    "monotone-conjunctions": Literals(present=True, absent=False, denied=False),
    "conjunctions": Literals(present=True, absent=True, denied=False),
    "monotone-disjunctions": Literals(present=False, absent=True, denied=True),
    "disjunctions": Literals(present=True, absent=True, denied=True),
}


class Elimination:
    """`variables`: all there are, where declared; features are 0 or 1."""

    averaged = False
    window = None
    restarts = None

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        self._literals = CLASSES[settings.concepts or "monotone-conjunctions"]
        self._variables = variables_of(settings)
        self._counts = Theta(partitions)
        self._updates = Theta(partitions)
        self._always = 0
        """How many features were active in every update."""
        parts = Parts({"counts": self._counts, "updates": self._updates}, self._recount)
        self.begin, self.rollback = parts.begin, parts.rollback
        self.dump, self.load, self.length = parts.dump, parts.load, active

    def _holds(self, x: Features) -> bool:
        """Whether the conjunction is true of x."""
        updates = self._updates.sums.get("n", 0.0)
        active = [name for name, value in x if value != 0.0]
        if updates == 0.0:
            if self._literals.present and self._literals.absent:
                return False  # both x and not x
            if self._literals.present:
                return self._variables is not None and len(active) == len(self._variables)
            return not active
        counts = [self._counts.sums.get(name, 0.0) for name in active]
        if self._literals.present and sum(count == updates for count in counts) < self._always:
            return False
        return not (self._literals.absent and 0.0 in counts)

    def score(self, x: Features, clock: int = 0) -> float:
        """+1 where the hypothesis is true of x, -1 where not."""
        return 1.0 if self._holds(x) != self._literals.denied else -1.0

    def predict(self, score: float) -> bool:
        return score > 0.0

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it must be updated, predicted class). A false positive of the conjunction teaches nothing."""
        holds = self._holds(x)
        must = (positive != self._literals.denied) and not holds
        return 1.0 if must else 0.0, holds != self._literals.denied

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """Count the active features; an example of the wrong class has nothing to eliminate."""
        if positive == self._literals.denied:
            return
        self._counts.add(partition, tuple((name, 1.0) for name, value in x if value != 0.0), 1.0)
        self._updates.add(partition, (("n", 1.0),), 1.0)
        self._recount()

    def _recount(self) -> None:
        updates = self._updates.sums.get("n", 0.0)
        self._always = sum(count == updates for count in self._counts.sums.values())

    def digest(self) -> str:
        """SHA-256 of the counts and the number of updates."""
        return sha256((self._counts.digest() + self._updates.digest()).encode()).hexdigest()

    def theta(self) -> Mapping[str, float]:
        """In how many updates each feature was active."""
        return self._counts.sums

    def weights(self) -> Mapping[str, float]:
        """The literals left, each 1: `name` and `not name`, of the features seen."""
        updates = self._updates.sums.get("n", 0.0)
        seen = self._counts.sums
        left = {name: 1.0 for name, count in seen.items() if self._literals.present and count == updates}
        if self._literals.absent and self._variables is not None:
            left |= {f"not {name}": 1.0 for name in self._variables if seen.get(name, 0.0) == 0.0}
        return left


def _requires(settings: LearnerSettings) -> Iterator[Unmet]:
    if settings.concepts is not None and settings.concepts not in CLASSES:
        yield Unmet("learner.concepts", f"elimination knows {', '.join(CLASSES)}", "Take one of these")


def _claim(run: Run) -> Claim | None:
    variables = variables_of(run.settings)
    if variables is None:
        return None
    general = run.settings.concepts in ("conjunctions", "disjunctions")
    most = bounds.missing_sets(bounds.elimination(len(variables), general=general), run.missing)
    return Claim("elimination", most, f"n = {len(variables)}{lacked(run)}")


def _undeclared(settings: LearnerSettings) -> str | None:
    if settings.variables is not None:
        return None
    return "Set learner.variables to see the bound that follows from their number."


KIND = Kind(
    name="elimination",
    order=210,
    make=Elimination,
    source="lecture 6, protocol III",
    bound="n; n + 1 for literals",
    shows="literals left",
    parameters=("concepts", "variables"),
    requires=_requires,
    boolean=True,
    no_window=STRIKES_OUT,
    no_ask=VOTES,
    no_cross=ONE_CONCEPT,
    no_probability=VOTES,
    claim=_claim,
    undeclared=_undeclared,
)
