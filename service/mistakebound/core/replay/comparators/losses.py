"""Cumulative loss of a sequence of scores: 0/1, hinge, squared and logarithmic."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p

from mistakebound.core.linear.theta import saturate


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums over the examples, with y = +1 or -1 and s the score. 12 digits: `exp` differs in the last."""

    mistakes: int
    mistake_rate: float | None
    """Of no example, None."""
    hinge: float
    """max(0, 1 - y s)"""
    squared: float
    """(y - s)^2"""
    log: float
    """ln(1 + exp(-y s))"""


def losses(
    labels: Sequence[bool], scores: Sequence[float], predicted: Sequence[bool] | None = None
) -> Losses:
    """`predicted` None: positive exactly where the score is above 0. A rule without scores has +1 and -1."""
    mistakes, hinge, squared, logarithmic = 0, 0.0, 0.0, 0.0
    for place, (positive, score) in enumerate(zip(labels, scores, strict=True)):
        y = 1.0 if positive else -1.0
        chosen = score > 0.0 if predicted is None else predicted[place]
        mistakes += chosen is not positive
        hinge += max(0.0, 1.0 - y * score)
        squared += saturate((y - score) * (y - score))
        logarithmic += softplus(-y * score)
    count = len(labels)
    mistake_rate = mistakes / count if count else None
    return Losses(mistakes, mistake_rate, rounded(hinge), rounded(squared), rounded(logarithmic))


def softplus(value: float) -> float:
    """ln(1 + exp(value)), without overflow."""
    return max(value, 0.0) + log1p(exp(-abs(value)))


def rounded(value: float, digits: int = 12) -> float:
    """Rounded to `digits` significant digits, and finite: the same text on every machine."""
    return float(f"{saturate(value):.{digits}g}")
