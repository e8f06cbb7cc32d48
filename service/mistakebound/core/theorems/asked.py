"""What is proved of the mistakes where labels are asked for: a bound on their mean over what is asked for.

One run may make more: that proves nothing false, as more updates than a bound allows would. So it is not among the
bounds that an alert compares with counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from msgspec import UNSET

from mistakebound.core.messages.tallies import Tally
from mistakebound.core.model.model import Model


@dataclass(frozen=True, slots=True)
class ExpectedMistakes:
    """A theorem on the mean over `labels.ask_seed`, beside the count of this one run."""

    name: str
    value: float
    """No more mistakes than this are to be expected."""
    count: int
    """Mistakes on published predictions of the present epoch, asked for or not, as far as their labels came."""
    assumes: str


def expected_mistakes(model: Model, tallies: Iterable[Tally]) -> ExpectedMistakes | None:
    """What the theorem says of this epoch, from its tallies of all partitions; None where it says nothing.

    It asks for a declared margin, for an epoch that began from nothing, for zero delay and one worker, and for updates
    of one size: what it says where they are costs is not known.
    """
    rate, prove = model.settings.labels.ask, model.kind.asking
    if rate is None or prove is None or model.based or model.missing != 0 or model.costs is not None:
        return None
    if model.restarts or (model.window is not None and model.window.forgot):
        return None
    counted = list(tallies)
    radii = [tally.asked.radius for tally in counted if tally.asked is not UNSET]
    if not radii or len(counted) != model.partitions or sum(tally.outstanding for tally in counted) > 1:
        return None
    claim = prove(model.settings.learner, rate, max(radii))
    if claim is None or not isfinite(claim.most):
        return None
    return ExpectedMistakes(
        claim.theorem, claim.most, sum(tally.mistakes for tally in counted), claim.assumes
    )
