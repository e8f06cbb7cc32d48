"""The perceptron with a normalised margin (lecture 6, the margin variant with ||w|| in the denominator).

It updates whenever y * w.x / ||w|| < gamma / 2, and always while w = 0. On unit vectors that are
separable by gamma0 >= gamma it ends with a separator of margin gamma/2, after at most 8/gamma0^2
updates. ||w||^2 is summed by `math.fsum`, which rounds once whatever the order, so auditors agree.
"""

from math import fsum, sqrt

from mistakebound.core.bounds import normalized_margin
from mistakebound.core.learners.claim import Claim, Run, euclidean_norm, separable
from mistakebound.core.learners.kind import Kind, Refusal
from mistakebound.core.linear.linear import Linear
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


def normalized_margin_perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: gamma > 0, the margin asked for; features must have unit length."""
    half = (settings.gamma or 0.0) / 2
    known = {-1: 0.0}  # the norm at a count of changes: it is asked for much more often than it changes

    def amount(score: float, x: Features, positive: bool) -> float:
        if learner.changes not in known:
            known.clear()
            known[learner.changes] = sqrt(fsum(value * value for value in learner.theta().values()))
        norm = known[learner.changes]
        return 1.0 if norm == 0.0 or (score if positive else -score) / norm < half else 0.0

    learner = Linear(settings, partitions, amount=amount)
    return learner


def _claim(run: Run) -> Claim | None:
    gamma = run.settings.gamma
    if run.settings.delay_policy == "issued":
        return separable(run)
    if gamma is None or run.missing:
        return None
    return Claim("normalised margin", normalized_margin(gamma), f"gamma = {gamma:.4g}")


KIND = Kind(
    name="normalized-margin-perceptron",
    order=50,
    make=normalized_margin_perceptron,
    source="lecture 6",
    bound="8/gamma^2",
    parameters=("gamma", "tie", "window"),
    needs=("gamma",),
    unit=True,
    no_cross=Refusal(
        "divides by the length of all weights, which every tenant's updates change",
        "Take the margin-perceptron; or a worker for each tenant",
    ),
    claim=_claim,
    norm=euclidean_norm,
    no_probability=None,
    size=Linear.size,
    sums=True,
)
