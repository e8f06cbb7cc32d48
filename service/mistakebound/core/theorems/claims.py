"""Which theorems speak of a run, what they say of it, or why none does: from a model and the counts of its epoch.

Counts are those of the epoch, and so is every number that a bound needs: R, the versions that decided, the
examples that waited. All of them come from the log, so a restart changes none. What a bound assumes about
the data is what its user declared (`learner.gamma`, `learner.relevant`); that a count exceeds it proves
that this is not so. The certificate assumes nothing. Which theorem a learner has is said on its page.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, Run
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.tallies import Tally
from mistakebound.core.model.model import Model

ROUNDING = 1 + 1e-9
"""A bound at exactly its count must hold; sums of floats may be off by this much."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A theorem beside the count that it bounds."""

    name: str
    value: float
    count: int
    holds: bool
    of: Literal["updates", "mistakes"]
    """What is counted: of the present epoch; mistakes on published predictions."""
    assumes: str
    """The numbers it rests on: what was declared of the data, and what was observed."""


def claims(model: Model, tallies: Iterable[Tally]) -> tuple[Bound, ...]:
    """Every bound that speaks of this epoch: of all its updates, and of the mistakes in these tallies.

    `tallies` are the epoch's, of all partitions or of those at hand. Nothing is claimed without a declaration, in an
    epoch that started from another one's rows, once a window has left updates out (each theorem counts all updates
    against one theta that holds them all), or while updates are missing that a deciding model already had. After a
    restart: on one partition, where no deciding model lacked an update.
    """
    missing, settings = model.missing, model.settings.learner
    forgot = model.window is not None and model.window.forgot
    if model.based or missing is None or forgot or not _restarts_known(model):
        return ()
    costs = None if model.costs is None else (model.costs.least, model.costs.most)
    claim = model.kind.claim(Run(settings, model.classes, model.radius, missing, model.learner, costs))
    if claim is None or not isfinite(claim.most):
        return ()
    if model.restarts:
        claim = _restarted(claim, model.restarts)
    counted = list(tallies)
    waited = [tally.outstanding for tally in counted]
    mistakes = sum(tally.mistakes for tally in counted)
    if model.settings.labels.ask is not None:  # mistakes whose label was not asked for cause no update
        if claim.of == "mistakes":
            return ()
        return (_bound(claim, "updates", claim.most, sum(model.updates), claim.assumes),)
    if claim.of == "mistakes":
        at_once = not missing and sum(waited) <= 1 and len(counted) == model.partitions
        return (_bound(claim, "mistakes", claim.most, mistakes, claim.assumes),) if at_once else ()
    found = [_bound(claim, "updates", claim.most, sum(model.updates), claim.assumes)]
    if settings.delay_policy == "issued":  # each mistake is an update
        found.append(_bound(claim, "mistakes", claim.most, mistakes, claim.assumes))
    elif not model.learner.averaged:
        most = bounds.rescored_by_partition(claim.most, waited)
        assumes = claim.assumes if sum(waited) <= 1 else f"{claim.assumes}, {sum(waited)} waiting"
        if isfinite(most):
            found.append(_bound(claim, "mistakes", most, mistakes, assumes))
    return tuple(found)


def _restarts_known(model: Model) -> bool:
    """Whether what a restart leaves is bounded."""
    return not model.restarts or (model.partitions == 1 and not model.missing)


def _restarted(claim: Claim, restarts: int) -> Claim:
    """A learner restarts by a proof that rests on the same theta, so its theorem bounds each of its lives."""
    most = bounds.restarted(claim.most * ROUNDING, restarts)
    times = "1 restart" if restarts == 1 else f"{restarts} restarts"
    return claim._replace(
        theorem=f"{claim.theorem}, restarted", most=most, assumes=f"{claim.assumes}, {times}"
    )


def _bound(claim: Claim, of: Literal["updates", "mistakes"], value: float, count: int, assumes: str) -> Bound:
    return Bound(claim.theorem, value, count, count <= value * ROUNDING, of, assumes)


def why_none(model: Model) -> str:
    """Why `claims` says nothing of this model: the first reason that holds, and what to do about it."""
    if model.based:
        return "This epoch started from what another one had learned; no theorem speaks of that."
    if model.missing is None:
        return "Updates by other workers are still to come; the bound returns with them."
    if not _restarts_known(model):
        return "After a restart bounds are known for one partition and one worker only."
    undeclared = model.kind.undeclared(model.settings.learner)
    if undeclared is not None:
        return undeclared
    if not declared(model.settings.labels):
        return "Classes are open; no theorem speaks of classes that are not known beforehand."
    return "The learner's theorem does not hold for these settings, or not for these data."


def certificate(model: Model) -> float | None:
    """No separator of length 1 in the learner's own space has a larger margin on the updates that count.

    Those are the updates of this epoch, or with a window the newest of them, or those since a restart.

    Length as the learner's theorem measures it. None before an update and where no such statement is known:
    set learners, a kernel's budget, Littlestone's Winnow, Winnow with a number above or below 0 as threshold, open classes.
    """
    counting = model.window or model.learner.restarts
    updates = sum(model.updates if counting is None else counting.counting())
    if model.based or not updates:
        return None
    settings, kind, length = model.settings.learner, model.kind, None
    if kind.own_norm is not None:
        length = kind.own_norm(settings, model.learner)
    elif kind.norm is not None:
        length = kind.norm(settings, model.learner.theta())
    if length is not None and model.costs is not None:
        length /= model.costs.least  # each update adds at least that much of its margin to u.theta
    return _margin(length, updates)


def window_certificate(model: Model) -> float | None:
    """The same on the newest `WINDOW` updates of each partition alone, so that old ones do not hide a drift.

    Each partition's updates are folded from zero in its log's order, and the partitions summed in order:
    subtracting what left the window would round differently. None also for kernels and many classes.
    """
    if model.based or not len(model.recent) or model.kind.norm is None:
        return None
    sums: dict[str, float] = {}
    for row in model.recent.rows:
        block: dict[str, float] = {}
        for mistake in row:
            for name, value in mistake.x:
                block[name] = block.get(name, 0.0) + mistake.sign * value
        for name, value in block.items():
            sums[name] = sums.get(name, 0.0) + value
    return _margin(model.kind.norm(model.settings.learner, sums), len(model.recent))


def _margin(length: float | None, updates: int) -> float | None:
    return None if length is None else bounds.margin_upper_bound(length, updates)


def concepts_left(model: Model) -> int | None:
    """Size of the version space; None for a learner without one."""
    count = model.kind.concepts_left
    return None if count is None else count(model.learner)
