"""Littlestone's Winnow, for disjunctions and r-of-k thresholds over Boolean features (Littlestone 1988).

Predict positive when the active features' weights add up to more than the threshold. On a missed positive
each active weight is promoted by alpha; on a false positive it is divided by alpha (Winnow2), or set to zero
for good (Winnow1: disjunctions only). A weight is alpha^theta, theta a count of promotions less demotions,
-inf once set to zero. A feature in no update sleeps at weight 1, so their number n may be huge.
"""

from collections.abc import Iterator
from math import inf
from sys import float_info

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, Run
from mistakebound.core.learners.concepts import variables_of
from mistakebound.core.learners.kind import ROUNDS, Kind, Unmet
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import active
from mistakebound.settings import LearnerSettings

_HALF = "Set it to about half the number of variables"


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

    threshold = 0.0 if isinstance(settings.threshold, str) else settings.threshold or 0.0
    return Linear(settings, partitions, weight=weight, threshold=threshold, step=step, length=active)


def _claim(run: Run) -> Claim | None:
    settings, variables = run.settings, variables_of(run.settings)
    threshold = settings.threshold
    if settings.relevant is None or variables is None or threshold is None or isinstance(threshold, str):
        return None
    if run.missing or settings.delay_policy == "issued":
        return None
    zero = settings.demotion == "zero"
    if threshold < (1 / settings.alpha if zero else 1.0):
        return None
    bound = bounds.littlestone_zero if zero else bounds.littlestone_divide
    most = bound(settings.relevant, len(variables), settings.alpha, threshold)
    return Claim("Littlestone", most, f"k = {settings.relevant}, n = {len(variables)}")


def _requires(settings: LearnerSettings) -> Iterator[Unmet]:
    if isinstance(settings.threshold, str):
        yield Unmet(
            "learner.threshold", f"littlestone-winnow needs a number, not {settings.threshold!r}", _HALF
        )


def _cautions(settings: LearnerSettings) -> Iterator[Unmet]:
    threshold = settings.threshold
    if threshold is None or isinstance(threshold, str):
        return
    if threshold < 0.0 or (threshold == 0.0 and settings.demotion == "divide"):
        wrong = "its weights and features are never negative, so it predicts positive for every example"
        yield Unmet("learner.threshold", wrong, _HALF)


def _undeclared(settings: LearnerSettings) -> str | None:
    if settings.relevant is not None and settings.variables is not None:
        return None
    return "Set learner.relevant and learner.variables to see the bound that follows from them."


KIND = Kind(
    name="littlestone-winnow",
    order=130,
    make=littlestone_winnow,
    source="Littlestone 1988",
    bound="3k(log2 theta + 1) + 2n/theta at alpha 2",
    parameters=("alpha", "threshold", "demotion", "tie", "variables", "relevant", "window"),
    needs=("threshold",),
    requires=_requires,
    cautions=_cautions,
    boolean=True,
    claim=_claim,
    undeclared=_undeclared,
    starts_at=lambda settings: 1.0,
    rounds=lambda settings: True,
    no_probability=ROUNDS,
    sums=True,
)
