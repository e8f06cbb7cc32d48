"""Whether the mistake rate rose: since when, and from what to what.

Every time at which a bucket of the history begins may be the change: all labels before it are the reference, all
since are compared with it. The change is the time that tells the two apart best (the largest likelihood ratio of two
rates against one). So nothing of a drift is ever part of its own reference, and a drift is told for as long as it
lasts and the history reaches back before it: two days. It is over once the newest labels are nearer to the
reference than to the rate since.
"""

from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from mistakebound.core.reporting.status import History

ENOUGH = 20
"""Labels that a comparison needs on each side."""
SIGMAS = 5.0
"""High enough that a day of comparisons should give no false alarm."""
RISE = 1.25
"""A smaller rise is no drift, however many labels prove it."""
NEWEST = 100
"""Labels that say how things are now."""


class Drift(NamedTuple):
    """A rise of the mistake rate."""

    since_s: float
    """Unix time of the change."""
    labelled: int
    """Since then."""
    mistakes: int
    labelled_before: int
    """The reference."""
    mistakes_before: int


def drift(history: Sequence[History]) -> Drift | None:
    """The drift that goes on, by the finest ring that shows it; `history`: finest first."""
    now = _now(history)
    for ring in history:
        found = max(_rises(ring), default=None)
        if found is None:
            continue
        one = found[1]
        reference, since = one.mistakes_before / one.labelled_before, one.mistakes / one.labelled
        if one.labelled <= NEWEST or now is None or now > (reference + since) / 2:
            return one
    return None


def _now(history: Sequence[History]) -> float | None:
    """The mistake rate of the newest labels; None where there are too few."""
    for ring in history:
        labelled = mistakes = 0
        for place in reversed(range(len(ring.at))):
            labelled += ring.labelled[place]
            mistakes += ring.mistakes[place]
            if labelled >= NEWEST:
                return mistakes / labelled
    return None


def _rises(ring: History) -> Iterator[tuple[float, Drift]]:
    """Every time since which significantly more labels were mistakes than before, with how significantly."""
    labelled, mistakes = sum(ring.labelled), sum(ring.mistakes)
    before = wrong_before = 0
    for at, judged, wrong in zip(ring.at, ring.labelled, ring.mistakes, strict=True):
        since, wrong_since = labelled - before, mistakes - wrong_before
        if before >= ENOUGH and since >= ENOUGH and wrong_since * before >= RISE * wrong_before * since:
            ratio = 2 * (
                _likelihood(wrong_since, since)
                + _likelihood(wrong_before, before)
                - _likelihood(mistakes, labelled)
            )
            if ratio >= SIGMAS * SIGMAS:
                yield ratio, Drift(at, since, wrong_since, before, wrong_before)
        before, wrong_before = before + judged, wrong_before + wrong


def _likelihood(part: int, whole: int) -> float:
    """Log-likelihood of `part` of `whole` under their own rate."""
    return sum(count * log(count / whole) for count in (part, whole - part) if count)
