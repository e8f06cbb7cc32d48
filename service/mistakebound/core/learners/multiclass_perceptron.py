"""The perceptron for many classes (Crammer & Singer 2003; Duda & Hart's construction of Kesler).

One theta for each class; predict the class of the largest score, ties to the first. On a mistake the true
class's theta gets + x and the predicted one's - x. With ||U||_F = 1 and gamma the least (u_y - u_k).x over
wrong k: at most 2 (R/gamma)^2 mistakes. Open classes: a class is known from its first update on, and with a
window as long as one counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from math import fsum, sqrt
from struct import pack
from typing import Any

from mistakebound.core.journal import Journal
from mistakebound.core.learners.claim import Claim, Run, perceptrons, undeclared_margin
from mistakebound.core.learners.kind import AVERAGES, Kind
from mistakebound.core.linear.theta import Theta, euclidean, saturate
from mistakebound.core.linear.window import window_of
from mistakebound.core.messages.features import Features
from mistakebound.settings import LabelValue, LearnerSettings


class MulticlassPerceptron:
    """Plain or averaged (as `averaged_perceptron`: a = (T+1) theta - kappa for each class)."""

    restarts = None

    def __init__(
        self, settings: LearnerSettings, partitions: int, classes: Sequence[LabelValue], averaged: bool
    ) -> None:
        """`classes` in the order that breaks ties; empty for open classes, in the order of their names."""
        self.averaged = averaged
        self._rate = settings.learning_rate
        self._partitions = partitions
        self.declared = tuple(classes)
        self.window = window_of(settings, partitions)
        self.length = euclidean
        self._theta: dict[LabelValue, Theta] = {}
        self._kappa: dict[LabelValue, Theta] = {}
        self._met: Journal[LabelValue] = Journal()
        """Classes that got their sums."""
        for one in classes:
            self._meet(one)

    def score(self, x: Features, clock: int) -> list[float]:
        """One score for each known class, over k features."""
        if not self.averaged:
            return [saturate(self._rate * self._theta[one].dot(x)) for one in self.known()]
        return [self._average(one, x, float(clock + 1)) for one in self.known()]

    def _average(self, one: LabelValue, x: Features, times: float) -> float:
        theta, kappa, total = self._theta[one].sums, self._kappa[one].sums, 0.0
        for name, value in x:
            coordinate = theta.get(name)
            if coordinate is not None:
                total += (times * coordinate - kappa[name]) * value
        return saturate(self._rate * total)

    def predict(self, score: list[float]) -> LabelValue | None:
        """The first class of the largest score; None while none is known."""
        return self.known()[score.index(max(score))] if score else None

    def decide(self, x: Features, label: LabelValue) -> tuple[float, LabelValue | None]:
        """(1 where it errs on this label, predicted class), by theta."""
        predicted = self.predict([self._theta[one].dot(x) for one in self.known()])
        return 1.0 if predicted != label else 0.0, predicted

    def judge(
        self, x: Features, label: LabelValue, clock: int
    ) -> tuple[float, LabelValue | None, LabelValue | None]:
        """`decide`, and the class that `score` would publish: T = `clock`."""
        amount, predicted = self.decide(x, label)
        return amount, predicted, self.predict(self.score(x, clock))

    def fold(
        self, partition: int, x: Features, label: LabelValue, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """theta_label += amount*x, theta_predicted -= amount*x; kappa likewise, times `clock`."""
        if self.window is not None:
            oldest = self.window.advance(partition)
            if oldest:
                for theta in self._all():
                    theta.leave_out(partition, oldest)
        for one, sign in ((label, amount), (predicted, -amount)):
            if one is not None:
                self._meet(one)
                self._theta[one].add(partition, x, sign)
                self._kappa[one].add(partition, x, sign * clock)

    def _meet(self, one: LabelValue) -> None:
        if one not in self._theta:
            for thetas in (self._theta, self._kappa):
                thetas[one] = Theta(self._partitions, window=self.window)
                thetas[one].begin(undoable=self._met.newest is not None)
            self._met.note(one)

    def known(self) -> Sequence[LabelValue]:
        """The classes that there are scores of, in the order of these."""
        if self.declared:
            return self.declared
        return sorted((one for one, theta in self._theta.items() if theta.sums), key=str)

    def begin(self, undoable: bool = True) -> None:
        self._met.begin(undoable)
        for theta in self._all():
            theta.begin(undoable)
        if self.window is not None:
            self.window.begin(undoable)

    def rollback(self) -> None:
        if self.window is not None:
            self.window.rollback()
        for theta in self._all():
            theta.rollback()
        for one in self._met.take_back():
            del self._theta[one], self._kappa[one]

    def _all(self) -> Iterable[Theta]:
        return (*self._theta.values(), *self._kappa.values())

    def dump(self) -> Any:
        """(class, rows of theta [P, features], rows of kappa) for each known class.

        With a window their blocks, and how many updates were folded.
        """
        rows = [(one, self._theta[one].dump(), self._kappa[one].dump()) for one in self.known()]
        return rows if self.window is None else {"classes": rows, "folded": self.window.folded}

    def load(self, state: Any) -> None:
        if self.window is not None:
            self.window.load(state["folded"])
            state = state["classes"]
        self._theta, self._kappa = {}, {}
        for one in self.declared:
            self._meet(one)
        for one, theta, kappa in state:
            self._meet(one)
            self._theta[one].load(theta)
            self._kappa[one].load(kappa)
        self._met.begin()

    def norm(self) -> float:
        """||Theta||_F."""
        return sqrt(fsum(value * value for theta in self._theta.values() for value in theta.sums.values()))

    def digest(self) -> str:
        """SHA-256 over the names in UTF-8 byte order: name, zero byte, one float64 for each class.

        Before them, where classes are open: each class and a zero byte.
        """
        sums = [self._theta[one].sums for one in self.known()]
        seal = sha256()
        for one in () if self.declared else self.known():
            seal.update(str(one).encode() + b"\0")
        for name in sorted(
            {name for each in sums for name, value in each.items() if value != 0.0}, key=str.encode
        ):
            values = (each.get(name, 0.0) + 0.0 for each in sums)
            seal.update(name.encode() + b"\0" + pack(f"<{len(sums)}d", *values))
        return seal.hexdigest()

    def theta(self) -> Mapping[str, float]:
        """Coordinates by `class/name`."""
        return {
            f"{one}/{name}": value for one in self.known() for name, value in self._theta[one].sums.items()
        }

    def weights(self) -> Mapping[str, float]:
        """Weights by `class/name`."""
        return {name: self._rate * value for name, value in self.theta().items()}

    def averages(self, clock: int) -> Mapping[str, float]:
        """As `AveragedPerceptron.averages`, by `class/name`."""
        times = float(clock + 1)
        return {
            f"{one}/{name}": saturate(self._rate * (times * value - self._kappa[one].sums[name]))
            for one in self.known()
            for name, value in self._theta[one].sums.items()
        }


def _claim(run: Run) -> Claim | None:
    return perceptrons("multiclass", run, sqrt(2) * run.radius) if run.classes else None


def _norm(settings: LearnerSettings, learner: MulticlassPerceptron) -> float | None:
    return learner.norm() if learner.declared else None


def _by_class(state: Any) -> Any:
    """Classes come in the order in which a worker first met them, and may be empty again after a rollback."""
    if isinstance(state, dict):  # with a window
        return state | {"classes": _by_class(state["classes"])}
    met = [(repr(one), theta, kappa) for one, theta, kappa in state if any(theta) or any(kappa)]
    return sorted(met, key=lambda row: row[0])


def many_classes(name: str, averaged: bool, classes: Sequence[LabelValue]) -> Kind:
    """What the page of two classes says of more."""
    return Kind(
        name=name,
        order=0,
        make=lambda settings, partitions: MulticlassPerceptron(settings, partitions, classes, averaged),
        source="Crammer & Singer 2003; Duda & Hart",
        bound="2 (R/gamma)^2",
        shows="averaged weights, summed over the labels as scores are" if averaged else "weights",
        scores_with=MulticlassPerceptron.averages if averaged else None,
        parameters=("learning_rate", "tie", "gamma", "window", "cost_sensitive"),
        no_issued=AVERAGES if averaged else None,
        claim=_claim,
        undeclared=undeclared_margin,
        own_norm=_norm,
        comparable=_by_class,
        sums=True,
    )
