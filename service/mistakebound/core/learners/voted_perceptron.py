"""The voted perceptron (Freund & Schapire 1999; lecture 6, "Voted perceptron").

It updates as the perceptron does and remembers every weight vector; each votes with as many votes as
labelled examples it survived, its own mistake included. Order matters, so there is one partition. Memory:
one mistake a vector, at most `budget`; beyond that the oldest vectors lose their votes, not their part in
those after them. The perceptron's bound holds for updates, none for mistakes.
"""

from collections.abc import Mapping
from typing import Any

from mistakebound.core.learners.mistakes import Mistake, Mistakes
from mistakebound.core.linear.theta import Theta, digest, errs, euclidean, predict, saturate
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

BUDGET = 10_000


class VotedPerceptron:
    """A version is (updates, clock): the last vector gains a vote with each labelled example."""

    averaged = True

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        assert partitions == 1
        self._tie = settings.tie
        self._voters = Mistakes(1, settings.budget or BUDGET)
        self._theta = Theta(1)
        self._silent = Theta(1)
        """Sum of the mistakes whose vectors vote no more."""

    def score(self, x: Features, clock: int) -> float:
        """Votes for positive less votes for negative, T = `clock`."""
        z = dict(x)
        plain = self._silent.dot(x)
        voters = self._voters.rows[0]
        total = 0.0
        for place, voter in enumerate(voters):
            inner = 0.0
            for name, value in voter.x:
                inner += value * z.get(name, 0.0)
            plain += voter.sign * inner
            until = voters[place + 1].clock if place + 1 < len(voters) else clock + 1
            total += (until - voter.clock) * (1.0 if predict(plain, self._tie) else -1.0)
        return total

    def predict(self, score: float) -> bool:
        """The class with more votes."""
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[bool, bool]:
        """(errs on this label, predicted class), by the last vector."""
        score = saturate(self._theta.dot(x))
        return errs(score, positive, self._tie), predict(score, self._tie)

    def fold(
        self,
        partition: int,
        x: Features,
        positive: bool,
        clock: int,
        predicted: bool | None = None,
    ) -> None:
        """Append a vector: the last one + y*x."""
        sign = 1.0 if positive else -1.0
        self._theta.add(partition, x, sign)
        gone = self._voters.add(partition, Mistake(sign, x, clock))
        if gone is not None:
            self._silent.add(partition, gone.x, gone.sign)

    def begin(self, undoable: bool = True) -> None:
        """What follows can be rolled back, if it is `undoable`."""
        for part in (self._theta, self._silent, self._voters):
            part.begin(undoable)

    def rollback(self) -> None:
        """Undo what was folded since `begin`, to the bit."""
        for part in (self._theta, self._silent, self._voters):
            part.rollback()

    def dump(self) -> Any:
        """Theta, the silent sum, and the voters."""
        return {"theta": self._theta.rows, "silent": self._silent.rows, "voters": self._voters.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Become what `dump` gave."""
        self._theta.load(state["theta"])
        self._silent.load(state["silent"])
        self._voters.load(state["voters"])

    def length(self, x: Features) -> float:
        """||x||_2."""
        return euclidean(x)

    def digest(self) -> str:
        """SHA-256 of the last vector."""
        return digest(self._theta.sums)

    def theta(self) -> Mapping[str, float]:
        """The last vector."""
        return self._theta.sums

    weights = theta
