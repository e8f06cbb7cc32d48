"""Which theorems speak of a run, and what they say of it: from a model and the counts of its epoch.

Counts are those of the epoch, and so is every number that a bound needs: R, the versions that decided, the
examples that waited. All of them come from the log, so a restart changes none. What a bound assumes about
the data is what its user declared (`learner.gamma`, `learner.relevant`); that a count exceeds it proves
that this is not so. The certificate assumes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from math import fsum, isfinite, log, sqrt
from typing import Literal, NamedTuple

from mistakebound.core.learners import Learner, variables_of
from mistakebound.core.learners.averaged_perceptron import AveragedPerceptron
from mistakebound.core.learners.kernel_perceptron import KernelPerceptron
from mistakebound.core.learners.multiclass_perceptron import MulticlassPerceptron
from mistakebound.core.learners.version_space import VersionSpace
from mistakebound.core.learners.voted_perceptron import VotedPerceptron
from mistakebound.core.learners.winnow import EXPONENT_LIMIT
from mistakebound.core.linear.linear import Linear
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.tallies import Tally
from mistakebound.core.model.model import Model
from mistakebound.core.reporting.report import Bound
from mistakebound.core.theorems import bounds

_ADDITIVE = (Linear, AveragedPerceptron, VotedPerceptron)
"""Learners whose theta is the sum of y*x."""
ROUNDING = 1 + 1e-9
"""A bound at exactly its count must hold; sums of floats may be off by this much."""


class Claim(NamedTuple):
    """What a theorem says of the updates made so far."""

    theorem: str
    updates: float
    """The most there can be."""
    assumes: str
    """Its numbers, those declared and those observed."""


def standing(model: Model, tallies: Iterable[Tally]) -> tuple[Bound, ...]:
    """Every bound that speaks of this epoch: of all its updates, and of the mistakes in these tallies.

    `tallies` are the epoch's, of all partitions or of those at hand. There is none where nothing was
    declared, where the epoch started from another one's rows, once a window has left updates out (each theorem
    counts all of them against one theta that holds all), or while some updates are still to come of a model that
    has already decided others.
    """
    missing = model.missing
    if model.based or missing is None or (model.window is not None and model.window.forgot):
        return ()
    claim = _CLAIMS[model.settings.learner.kind](model, missing)
    if claim is None or not isfinite(claim.updates):
        return ()
    found = [_bound(claim, "updates", claim.updates, sum(model.updates), claim.assumes)]
    counted = list(tallies)
    waited = [tally.outstanding for tally in counted]
    mistakes = sum(tally.mistakes for tally in counted)
    if model.settings.learner.delay_policy == "issued":  # each mistake is an update
        found.append(_bound(claim, "mistakes", claim.updates, mistakes, claim.assumes))
    elif not model.learner.averaged:
        most = bounds.rescored_by_partition(claim.updates, waited)
        assumes = claim.assumes if sum(waited) <= 1 else f"{claim.assumes}, {sum(waited)} waiting"
        found.append(_bound(claim, "mistakes", most, mistakes, assumes))
    return tuple(found)


def _bound(claim: Claim, of: Literal["updates", "mistakes"], value: float, count: int, assumes: str) -> Bound:
    return Bound(claim.theorem, value, count, count <= value * ROUNDING, of, assumes)


def certificate(model: Model) -> float | None:
    """No separator of length 1 in the learner's own space has a larger margin on the updates that count.

    Those are the updates of this epoch, or with a window the newest of them.

    Length as the learner's theorem measures it. None before an update and where no such statement is known:
    set learners, a kernel's budget, Littlestone's Winnow, Winnow with a threshold, open classes.
    """
    updates = sum(model.updates if model.window is None else model.window.counting())
    length = _length(model)
    if model.based or not updates or length is None:
        return None
    return bounds.margin_upper_bound(length, updates)


def window_certificate(model: Model) -> float | None:
    """The same on the newest `WINDOW` updates of each partition alone, so that old ones do not hide a drift.

    Each partition's updates are folded from zero in its log's order and the partitions summed in order:
    subtracting what left the window would round differently. None also for kernels and many classes.
    """
    if model.based or not len(model.recent) or not isinstance(model.learner, _ADDITIVE):
        return None
    sums: dict[str, float] = {}
    for row in model.recent.rows:
        block: dict[str, float] = {}
        for mistake in row:
            for name, value in mistake.x:
                block[name] = block.get(name, 0.0) + mistake.sign * value
        for name, value in block.items():
            sums[name] = sums.get(name, 0.0) + value
    length = _length_of(model, sums)
    return None if length is None else bounds.margin_upper_bound(length, len(model.recent))


def concepts_left(learner: Learner) -> int | None:
    """Size of the version space; None where there is none."""
    space = getattr(learner, "space", None)
    return space.size if isinstance(space, VersionSpace) else None


def _length(model: Model) -> float | None:
    settings, learner = model.settings.learner, model.learner
    if isinstance(learner, MulticlassPerceptron):
        return learner.norm() if declared(model.settings.labels) else None
    if isinstance(learner, KernelPerceptron):
        return learner.norm() if settings.budget is None else None
    return _length_of(model, learner.theta())


def _length_of(model: Model, theta: Mapping[str, float]) -> float | None:
    """Length of theta in the norm of the learner's theorem; None where none is known."""
    settings = model.settings.learner
    if settings.kind == "winnow":  # all weights are positive: u >= 0
        return None if settings.threshold else max(0.0, max(theta.values(), default=0.0))
    if settings.kind == "balanced-winnow":
        return max((abs(value) for value in theta.values()), default=0.0)
    if settings.kind in ("littlestone-winnow", "elimination", "con", "halving"):
        return None
    return sqrt(fsum(value * value for value in theta.values()))


# --- one claim a theorem ----------------------------------------------------------------------------


def _separable(model: Model, missing: int) -> Claim | None:
    """Perceptrons: updates are mistakes of a model that may have lacked some."""
    return _perceptron("Novikoff", model, missing, model.radius)


def _perceptron(
    theorem: str, model: Model, missing: int, radius: float, growth: float | None = None
) -> Claim | None:
    gamma = model.settings.learner.gamma
    if gamma is None:
        return None
    most = bounds.missing_updates(radius**2 if growth is None else growth, radius, gamma, missing)
    return Claim(theorem, most, f"R = {radius:.4g}, gamma = {gamma:.4g}{_lacked(missing)}")


def _lacked(missing: int) -> str:
    return f", {missing} missing" if missing else ""


def _maybe_many(model: Model, missing: int) -> Claim | None:
    if isinstance(model.learner, MulticlassPerceptron):
        if not model.classes:
            return None
        return _perceptron("multiclass", model, missing, sqrt(2) * model.radius)
    return _separable(model, missing)


def _margin(model: Model, missing: int) -> Claim | None:
    settings = model.settings.learner
    if settings.delay_policy == "issued":  # updates at mistakes only, whatever the margin
        return _separable(model, missing)
    growth = model.radius**2 + 2 * settings.margin / settings.learning_rate
    return _perceptron("margin", model, missing, model.radius, growth)


def _normalized(model: Model, missing: int) -> Claim | None:
    gamma = model.settings.learner.gamma
    if model.settings.learner.delay_policy == "issued":
        return _separable(model, missing)
    if gamma is None or missing:
        return None
    return Claim("normalised margin", bounds.normalized_margin(gamma), f"gamma = {gamma:.4g}")


def _one_sided(model: Model, missing: int) -> Claim | None:
    return _perceptron("one-sided", model, missing, 1.0)


def _kernel(model: Model, missing: int) -> Claim | None:
    return _separable(model, missing) if model.settings.learner.budget is None else None


def _winnow(model: Model, missing: int) -> Claim | None:
    """Features in no update have no part in any of its sums: KL(u, uniform) <= ln(features in updates)."""
    settings = model.settings.learner
    theta = model.learner.theta()
    copies = 2 if settings.kind == "balanced-winnow" else 1
    largest = max((abs(value) for value in theta.values()), default=0.0)
    if settings.gamma is None or settings.threshold or settings.eta * largest >= EXPONENT_LIMIT:
        return None
    kl = log(max(1, copies * len(theta)))
    most = bounds.winnow_any_rate(kl, settings.eta, settings.gamma, model.radius, missing=missing)
    numbers = (
        f"n = {len(theta)}, R = {model.radius:.4g}, gamma = {settings.gamma:.4g}, eta = {settings.eta:.4g}"
    )
    return Claim("Winnow", most, numbers + _lacked(missing))


def _littlestone(model: Model, missing: int) -> Claim | None:
    settings = model.settings.learner
    variables = variables_of(settings)
    if settings.relevant is None or variables is None or settings.threshold is None:
        return None
    if missing or settings.delay_policy == "issued":
        return None
    zero = settings.demotion == "zero"
    if settings.threshold < (1 / settings.alpha if zero else 1.0):
        return None
    bound = bounds.littlestone_zero if zero else bounds.littlestone_divide
    most = bound(settings.relevant, len(variables), settings.alpha, settings.threshold)
    return Claim("Littlestone", most, f"k = {settings.relevant}, n = {len(variables)}")


def _elimination(model: Model, missing: int) -> Claim | None:
    settings = model.settings.learner
    variables = variables_of(settings)
    if variables is None:
        return None
    general = settings.concepts in ("conjunctions", "disjunctions")
    most = bounds.missing_sets(bounds.elimination(len(variables), general=general), missing)
    return Claim("elimination", most, f"n = {len(variables)}{_lacked(missing)}")


def _finite(theorem: str, bound: Callable[[int], float]) -> Callable[[Model, int], Claim | None]:
    def claim(model: Model, missing: int) -> Claim | None:
        space: VersionSpace = model.learner.space  # type: ignore[attr-defined]
        most = bounds.missing_sets(bound(space.concepts.size), missing)
        return Claim(theorem, most, f"|C| = {space.concepts.size}{_lacked(missing)}")

    return claim


_CLAIMS: Mapping[str, Callable[[Model, int], Claim | None]] = {
    "perceptron": _maybe_many,
    "averaged-perceptron": _maybe_many,
    "voted-perceptron": _separable,
    "margin-perceptron": _margin,
    "normalized-margin-perceptron": _normalized,
    "one-sided-perceptron": _one_sided,
    "kernel-perceptron": _kernel,
    "winnow": _winnow,
    "balanced-winnow": _winnow,
    "littlestone-winnow": _littlestone,
    "elimination": _elimination,
    "con": _finite("CON", bounds.con),
    "halving": _finite("Halving", bounds.halving),
}
