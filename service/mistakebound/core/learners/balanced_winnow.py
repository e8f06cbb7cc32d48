"""Balanced Winnow: Winnow on [x; -x], so that weights of either sign can be learned (lecture 6).

The two copies of a feature have theta and -theta, so their weights' difference is
w0*exp(eta*theta) - w0*exp(-eta*theta) = 2*w0*sinh(eta*theta). BIAS is a feature like the others and
is doubled too, where the notes leave b single.
"""

from math import sinh

from mistakebound.core.learners.claim import largest_norm, undeclared_margin
from mistakebound.core.learners.kind import ROUNDS, Kind
from mistakebound.core.learners.winnow import EXPONENT_LIMIT, claim
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import largest, saturate
from mistakebound.settings import LearnerSettings


def balanced_winnow(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: initial_weight w0 > 0 and eta > 0; there is no threshold, BIAS learns it."""
    initial, eta = settings.initial_weight, settings.eta

    def weight(theta: float) -> float:
        return saturate(2.0 * initial * sinh(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta))))

    return Linear(settings, partitions, weight=weight, length=largest)


KIND = Kind(
    name="balanced-winnow",
    order=120,
    make=balanced_winnow,
    source="Littlestone 1988; Zhang 2000",
    bound="the same on [x; -x]",
    parameters=("eta", "initial_weight", "tie", "gamma", "window"),
    claim=lambda run: claim(run, copies=2),
    undeclared=undeclared_margin,
    norm=largest_norm,
    starts_at=lambda settings: 0.0,
    rounds=lambda settings: True,
    no_probability=ROUNDS,
    sums=True,
)
