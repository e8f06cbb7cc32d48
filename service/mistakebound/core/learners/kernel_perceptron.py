"""The kernel (dual) perceptron (Aizerman et al. 1964; Freund & Schapire 1999): the model is its mistakes.

Predict the sign of sum of y_i K(x_i, x) over the mistakes; on a mistake, append it. In the kernel's space it
is the perceptron, with its bound, R^2 the largest K(x, x) of a mistake. XOR is separable for degree 2. With
a budget the oldest mistakes of a partition are forgotten, and the bound with them.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from math import exp, inf, sqrt
from typing import Any

from mistakebound.core.learners.claim import Claim, Run, separable, undeclared_margin
from mistakebound.core.learners.kind import Kind, Refusal
from mistakebound.core.learners.mistakes import Mistake, Mistakes
from mistakebound.core.linear.theta import errs, predict, saturate
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

Kernel = Callable[[Features, Mapping[str, float]], float]


def dot(x: Features, z: Mapping[str, float]) -> float:
    """x.z over the k features of x, in their order."""
    total = 0.0
    for name, value in x:
        total += value * z.get(name, 0.0)
    return total


def polynomial(degree: int) -> Kernel:
    """(x.z + 1)^degree, infinite where float64 ends."""

    def kernel(x: Features, z: Mapping[str, float]) -> float:
        base = dot(x, z) + 1.0
        try:
            return float(base**degree)
        except OverflowError:
            return -inf if base < 0.0 and degree % 2 else inf

    return kernel


def rbf(width: float) -> Kernel:
    """exp(-||x - z||^2 / (2 width^2))."""

    def kernel(x: Features, z: Mapping[str, float]) -> float:
        square, named = 0.0, set()
        for name, value in x:
            named.add(name)
            square += (value - z.get(name, 0.0)) ** 2
        for name, value in z.items():
            if name not in named:
                square += value * value
        return exp(-square / 2.0 / width / width)  # one by one: the square of a small width is 0

    return kernel


class KernelPerceptron:
    """`settings`: kernel `polynomial` (degree) or `rbf` (width), tie, budget per partition (None: no limit)."""

    averaged = False
    window = None
    restarts = None

    def __init__(self, settings: LearnerSettings, partitions: int) -> None:
        self._tie = settings.tie
        self._kernel = polynomial(settings.degree) if settings.kernel == "polynomial" else rbf(settings.width)
        self._mistakes = mistakes = Mistakes(partitions, settings.budget)
        self._squared = 0.0
        self._counted = [0] * partitions
        self.begin, self.dump, self.digest = mistakes.begin, mistakes.dump, mistakes.digest

    def score(self, x: Features, clock: int = 0) -> float:
        """Sum over the mistakes, partition by partition in log order."""
        z, total = dict(x), 0.0
        for mistake in self._mistakes:
            total += mistake.sign * saturate(self._kernel(mistake.x, z))
        return saturate(total)

    def predict(self, score: float) -> bool:
        return predict(score, self._tie)

    def decide(self, x: Features, positive: bool) -> tuple[float, bool]:
        """(1 where it errs on this label, predicted class)."""
        score = self.score(x)
        return 1.0 if errs(score, positive, self._tie) else 0.0, predict(score, self._tie)

    def fold(
        self, partition: int, x: Features, positive: bool, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """Append the mistake."""
        self._mistakes.add(partition, Mistake(1.0 if positive else -1.0, x, clock))

    def rollback(self) -> None:
        self._mistakes.rollback()
        self._recount()

    def load(self, state: Any) -> None:
        self._mistakes.load(state)
        self._recount()

    def length(self, x: Features) -> float:
        """sqrt(K(x, x)): the length in the kernel's space."""
        return sqrt(max(0.0, saturate(self._kernel(x, dict(x)))))

    def norm(self) -> float:
        """||theta|| in the kernel's space: sqrt of sum over i, j of y_i y_j K(x_i, x_j).

        Without a budget. Mistakes counted by an earlier call are not counted again.
        """
        rows = self._mistakes.rows
        known = [
            mistake for row, count in zip(rows, self._counted, strict=True) for mistake in islice(row, count)
        ]
        for partition, row in enumerate(rows):
            for mistake in islice(row, self._counted[partition], None):
                z = dict(mistake.x)
                inner = saturate(self._kernel(mistake.x, z)) / 2
                for other in known:
                    inner += mistake.sign * other.sign * saturate(self._kernel(other.x, z))
                self._squared = saturate(self._squared + 2 * inner)
                known.append(mistake)
            self._counted[partition] = len(row)
        return sqrt(max(0.0, self._squared))

    def _recount(self) -> None:
        self._squared, self._counted = 0.0, [0] * len(self._mistakes.rows)

    def theta(self) -> Mapping[str, float]:
        """Signed sums of the mistakes' values by name: what a linear kernel would have learned."""
        sums: dict[str, float] = {}
        for mistake in self._mistakes:
            for name, value in mistake.x:
                sums[name] = sums.get(name, 0.0) + mistake.sign * value
        return sums

    weights = theta


def _claim(run: Run) -> Claim | None:
    return separable(run) if run.settings.budget is None else None


def _undeclared(settings: LearnerSettings) -> str | None:
    if settings.gamma is not None and settings.budget is not None:
        return "With a budget mistakes are forgotten, and the bound with them."
    return undeclared_margin(settings)


def _norm(settings: LearnerSettings, learner: KernelPerceptron) -> float | None:
    return learner.norm() if settings.budget is None else None


KIND = Kind(
    name="kernel-perceptron",
    order=70,
    make=KernelPerceptron,
    source="Aizerman et al. 1964; Freund & Schapire 1999",
    bound="(R/gamma)^2 in the kernel's space, without a budget",
    shows="signed sums over the mistakes",
    parameters=("kernel", "degree", "width", "budget", "tie", "gamma"),
    no_window=Refusal(
        "keeps its mistakes one by one, and forgets them one by one",
        "Set learner.budget: the number of newest mistakes of each partition that count",
    ),
    no_cross=Refusal(
        "has a kernel by which examples of two tenants still resemble each other",
        "Take a linear learner, such as the perceptron; or a worker for each tenant",
    ),
    claim=_claim,
    undeclared=_undeclared,
    own_norm=_norm,
    rounds=lambda settings: settings.kernel == "rbf",
)
