"""The voted perceptron (Freund & Schapire 1999; lecture 6, "Voted perceptron").

It updates as the perceptron does and remembers every weight vector; each votes with as many votes as
labelled examples it survived, its own mistake included. Order matters, so there is one partition. Memory:
one mistake a vector, at most `budget`; beyond that the oldest vectors lose their votes, not their part in
those after them. The perceptron's bound holds for updates, none for mistakes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from mistakebound.core.learners.claim import euclidean_norm, separable, undeclared_margin
from mistakebound.core.learners.kind import AVERAGES, GROWS, Kind, Refusal
from mistakebound.core.learners.mistakes import Mistake, Mistakes
from mistakebound.core.linear.parts import Parts
from mistakebound.core.linear.theta import Theta, errs, euclidean, predict, saturate
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

BUDGET = 10_000


class VotedPerceptron:
    """A version is (updates, clock): the last vector gains a vote with each labelled example."""

    averaged = True
    window = None
    restarts = None

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        assert partitions == 1
        self._tie = settings.tie
        self._voters = Mistakes(1, settings.budget or BUDGET)
        self._theta = Theta(1)
        self._silent = Theta(1)
        """Sum of the mistakes whose vectors no longer vote."""
        self._counted: tuple[Features, Mistake, float, float] | None = None
        """The features last asked for, the newest vector then, and what `_votes` gave: a vector settles all before it."""
        parts = Parts({"theta": self._theta, "silent": self._silent, "voters": self._voters})
        self.begin, self.rollback = parts.begin, parts.rollback
        self.dump, self.load = parts.dump, parts.load
        self.digest, self.length = self._theta.digest, euclidean

    def score(self, x: Features, clock: int) -> float:
        """Votes for positive less votes for negative, T = `clock`.

        A label that follows its example asks for the same again: by then only the newest vector has more votes.
        """
        voters = self._voters.rows[0]
        if not voters:
            return 0.0
        newest, counted = voters[-1], self._counted
        if counted is None or counted[0] is not x or counted[1] is not newest:
            counted = self._counted = (x, newest, *self._votes(x, voters))
        _, _, before, last = counted
        return before + (clock + 1 - newest.clock) * last

    def _votes(self, x: Features, voters: Iterable[Mistake]) -> tuple[float, float]:
        """(the sum of the votes of all vectors but the newest, the class that the newest is for, as +1 or -1)."""
        z = dict(x)
        plain = self._silent.dot(x)
        total, vote, since = 0.0, 0.0, 0
        for voter in voters:
            total += (voter.clock - since) * vote
            inner = 0.0
            for name, value in voter.x:
                inner += value * z.get(name, 0.0)
            plain += voter.sign * inner
            vote, since = 1.0 if predict(plain, self._tie) else -1.0, voter.clock
        return total, vote

    def predict(self, score: float) -> bool:
        """The class with more votes."""
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it errs on this label, predicted class), by the last vector."""
        score = saturate(self._theta.dot(x))
        return 1.0 if errs(score, positive, self._tie) else 0.0, predict(score, self._tie)

    def judge(self, x: Features, positive: bool, clock: int) -> tuple[float, bool, bool]:
        """`decide`, and the class that `score` would publish: T = `clock`."""
        return *self.decide(x, positive), self.predict(self.score(x, clock))

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """Append a vector: the last one + y*x."""
        sign = 1.0 if positive else -1.0
        self._theta.add(partition, x, sign)
        gone = self._voters.add(partition, Mistake(sign, x, clock))
        if gone is not None:
            self._silent.add(partition, gone.x, gone.sign)

    def theta(self) -> Mapping[str, float]:
        """The last vector."""
        return self._theta.sums

    weights = theta


KIND = Kind(
    name="voted-perceptron",
    order=30,
    make=VotedPerceptron,
    source="Freund & Schapire 1999; lecture 6",
    bound="(R/gamma)^2",
    bounds="updates",
    shared="one partition: the order of its vectors matters",
    shows="weights of the last vector",
    parameters=("tie", "budget", "gamma"),
    no_window=Refusal(
        "has vectors that rest on all mistakes before them",
        "Take the averaged-perceptron, or learner.budget for its votes",
    ),
    no_issued=AVERAGES,
    no_ask=GROWS,
    one_partition=Refusal(
        "needs one partition, for the order of its vectors matters",
        "Take a log or recording of one partition, or the averaged-perceptron",
    ),
    claim=separable,
    undeclared=undeclared_margin,
    norm=euclidean_norm,
)
