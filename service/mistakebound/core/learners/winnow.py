"""Winnow with exponential updates (lecture 6, "Winnow"; Littlestone 1988; Zhang's form of it).

Predict the sign of w.x - threshold, with w = w0 * exp(eta * theta), so every weight starts at w0 and
stays positive. On a mistake each weight is promoted or demoted by its own factor:
w_d <- w_d * exp(eta * y * x_d).

With a number as threshold, the examples must fit it: with non-negative x and threshold 0 it never predicts
negative. The default, `initial`, fits any: the threshold of an example is w0 * sum of x, its score before anything was
learned. A feature in no update then says nothing, one with a weight above w0 speaks for positive, one below for
negative, and the score is the sum of w0 * (exp(eta * theta) - 1) * x.
"""

from collections.abc import Iterator, Mapping
from math import exp, expm1, inf, log, sqrt

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, Run, lacked, largest_norm, undeclared_margin
from mistakebound.core.learners.kind import ROUNDS, Kind, Unmet
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import largest, saturate
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

EXPONENT_LIMIT = 700.0
"""exp(709.8) overflows float64. Beyond the limit a weight stands still; theta goes on counting."""


def winnow(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: initial_weight w0 > 0, eta > 0, threshold (0 where an older epoch holds none)."""
    initial, eta = settings.initial_weight, settings.eta

    def weight(theta: float) -> float:
        return saturate(initial * exp(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta))))

    def centred(theta: float) -> float:
        return saturate(initial * expm1(max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, eta * theta))))

    if isinstance(settings.threshold, str):
        return Linear(settings, partitions, weight=centred, length=mixed)
    return Linear(settings, partitions, weight=weight, threshold=settings.threshold or 0.0, length=largest)


def mixed(x: Features) -> float:
    """sqrt(||x||_1 ||x||_inf) of k features; infinite where one is negative, for which no bound is known."""
    if any(value < 0.0 for _, value in x):
        return inf
    total = 0.0
    for _, value in x:
        total += value
    return sqrt(total * largest(x))


def _claim(run: Run) -> Claim | None:
    return _initial(run) if isinstance(run.settings.threshold, str) else claim(run)


def claim(run: Run, copies: int = 1) -> Claim | None:
    """Features in no update have no part in any of its sums: KL(u, uniform) <= ln(features in updates).

    `copies` of each feature, with a weight of their own.
    """
    settings, theta = run.settings, run.learner.theta()
    if settings.gamma is None or settings.threshold or _stands_still(run):
        return None
    kl = log(max(1, copies * len(theta)))
    most = bounds.winnow_any_rate(kl, settings.eta, settings.gamma, run.radius, missing=run.missing)
    numbers = (
        f"n = {len(theta)}, R = {run.radius:.4g}, gamma = {settings.gamma:.4g}, eta = {settings.eta:.4g}"
    )
    return Claim("Winnow", most, numbers + lacked(run))


def _initial(run: Run) -> Claim | None:
    """Against the initial weights: each decision must have been made by a model that lacked no update."""
    settings = run.settings
    if settings.gamma is None or run.missing or _stands_still(run):
        return None
    most = bounds.winnow_initial(settings.eta, settings.gamma, run.radius)
    numbers = f"R = {run.radius:.4g}, gamma = {settings.gamma:.4g}, eta = {settings.eta:.4g}"
    return Claim("Winnow, threshold initial", most, numbers)


def _stands_still(run: Run) -> bool:
    """Whether a weight has reached the limit, where it no longer is what the proofs say."""
    return run.settings.eta * largest_norm(run.settings, run.learner.theta()) >= EXPONENT_LIMIT


def _norm(settings: LearnerSettings, theta: Mapping[str, float]) -> float | None:
    """With a number as threshold all weights are positive, and so separators have u >= 0; else of either sign."""
    if isinstance(settings.threshold, str):
        return largest_norm(settings, theta)
    return None if settings.threshold else max(0.0, max(theta.values(), default=0.0))


def _cautions(settings: LearnerSettings) -> Iterator[Unmet]:
    if not isinstance(settings.threshold, str) and (settings.threshold or 0.0) <= 0.0:
        yield Unmet(
            "learner.threshold",
            "where no feature is negative, winnow predicts positive for every example",
            'Leave it out (the default is "initial"), unless your features are of both signs',
        )


KIND = Kind(
    name="winnow",
    order=110,
    make=winnow,
    source="Littlestone 1988; Zhang 2000",
    bound="about R^2/gamma^2; at threshold 0 KL/(eta gamma - eta^2 R^2/2)",
    parameters=("eta", "initial_weight", "threshold", "tie", "gamma", "window"),
    cautions=_cautions,
    claim=_claim,
    undeclared=undeclared_margin,
    norm=_norm,
    starts_at=lambda settings: settings.initial_weight,
    rounds=lambda settings: True,
    no_probability=ROUNDS,
    sums=True,
)
