"""Winnow with exponential updates (lecture 6, "Winnow"; Littlestone 1988; Zhang's form of it).

Predict the sign of w.x - threshold, with w = w0 * exp(eta * theta), so every weight starts at w0 and
stays positive. On a mistake each weight is promoted or demoted by its own factor:
w_d <- w_d * exp(eta * y * x_d). With non-negative x and threshold 0 it never predicts negative.
"""

from collections.abc import Mapping
from math import exp, log

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, Run, lacked, largest_norm, undeclared_margin
from mistakebound.core.learners.kind import Kind
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import largest, saturate
from mistakebound.settings import LearnerSettings

EXPONENT_LIMIT = 700.0
"""exp(709.8) overflows float64. Beyond the limit a weight stands still; theta goes on counting."""


def winnow(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: initial_weight w0 > 0, eta > 0, threshold (0 where not given)."""
    initial, eta = settings.initial_weight, settings.eta

    def weight(theta: float) -> float:
        return saturate(initial * exp(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta))))

    return Linear(settings, partitions, weight=weight, threshold=settings.threshold or 0.0, length=largest)


def claim(run: Run, copies: int = 1) -> Claim | None:
    """Features in no update have no part in any of its sums: KL(u, uniform) <= ln(features in updates).

    `copies` of each feature, with a weight of their own.
    """
    settings, theta = run.settings, run.learner.theta()
    if settings.gamma is None or settings.threshold:
        return None
    if settings.eta * largest_norm(settings, theta) >= EXPONENT_LIMIT:
        return None
    kl = log(max(1, copies * len(theta)))
    most = bounds.winnow_any_rate(kl, settings.eta, settings.gamma, run.radius, missing=run.missing)
    numbers = (
        f"n = {len(theta)}, R = {run.radius:.4g}, gamma = {settings.gamma:.4g}, eta = {settings.eta:.4g}"
    )
    return Claim("Winnow", most, numbers + lacked(run))


def _norm(settings: LearnerSettings, theta: Mapping[str, float]) -> float | None:
    """All weights are positive: separators have u >= 0."""
    return None if settings.threshold else max(0.0, max(theta.values(), default=0.0))


KIND = Kind(
    name="winnow",
    order=110,
    make=winnow,
    source="Littlestone 1988; Zhang 2000; CSE 446",
    bound="KL/(eta gamma - eta^2 R^2/2)",
    parameters=("eta", "initial_weight", "threshold", "tie", "gamma", "window"),
    claim=claim,
    undeclared=undeclared_margin,
    norm=_norm,
    starts_at=lambda settings: settings.initial_weight,
    rounds=lambda settings: True,
    sums=True,
)
