"""Winnow with exponential updates (lecture 6, "Winnow"; Littlestone 1988; Zhang's form of it).

Predict the sign of w.x - threshold, with w = w0 * exp(eta * theta), so every weight starts at w0 and
stays positive. On a mistake each weight is promoted or demoted by its own factor:
w_d <- w_d * exp(eta * y * x_d). With non-negative x and threshold 0 it never predicts negative.
"""

from math import exp

from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import largest, saturate
from mistakebound.core.linear.window import window_of
from mistakebound.settings import LearnerSettings

EXPONENT_LIMIT = 700.0
"""exp(709.8) overflows float64. Beyond the limit a weight stands still; theta goes on counting."""


def winnow(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: initial_weight w0 > 0, eta > 0, threshold (0 where not given)."""
    initial, eta = settings.initial_weight, settings.eta

    def weight(theta: float) -> float:
        return saturate(initial * exp(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta))))

    return Linear(
        partitions,
        settings.tie,
        weight=weight,
        threshold=settings.threshold or 0.0,
        length=largest,
        window=window_of(settings, partitions),
    )
