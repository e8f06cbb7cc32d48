"""Littlestone's Winnow, for disjunctions and r-of-k thresholds over Boolean features (Littlestone 1988).

Predict positive when the active features' weights add up to more than the threshold. On a missed positive
each active weight is promoted by alpha; on a false positive it is divided by alpha (Winnow2), or set to zero
for good (Winnow1: disjunctions only). A weight is alpha^theta, theta a count of promotions less demotions,
-inf once set to zero. A feature in no update sleeps at weight 1, so their number n may be huge.
"""

from math import inf
from sys import float_info

from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.window import window_of
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


def littlestone_winnow(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: alpha > 1, threshold (usually n/2, or n), demotion `divide` or `zero`; no BIAS."""
    alpha, demoted = settings.alpha, -inf if settings.demotion == "zero" else -1.0

    def weight(theta: float) -> float:
        if theta == -inf:
            return 0.0
        try:
            return float(alpha**theta)
        except OverflowError:
            return float_info.max

    def step(positive: bool) -> float:
        return 1.0 if positive else demoted

    return Linear(
        partitions,
        settings.tie,
        weight=weight,
        threshold=settings.threshold or 0.0,
        step=step,
        length=count,
        window=window_of(settings, partitions),
    )


def count(x: Features) -> float:
    """How many features are active: Boolean examples have no other size."""
    return sum(value for _, value in x)
