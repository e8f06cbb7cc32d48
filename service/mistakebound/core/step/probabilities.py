"""Probabilities from a partition's own labels: how often predictions as sure as this one came out positive.

1. The margin of a prediction is its score over the sum of the sizes of the score's terms, |score| <= sum of |w_i x_i|: a
   number from -1 to 1 that does not change when all weights are scaled. It falls into one of 20 equal buckets.
2. Of the labels of the epoch in this bucket, (positive + 1)/(labelled + 2) is the share expected of the next (Laplace).
3. A larger margin may not be less probable: neighbours that say so are pooled, numerators and denominators added up
   (pool adjacent violators, which is least squares under that order; Ayer et al. 1955). Fractions are compared exactly.
"""

from math import isfinite
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.reliability import BUCKETS
from mistakebound.core.messages.schema import Prediction
from mistakebound.core.messages.tallies import Tallies
from mistakebound.settings import LabelValue


class _Pool(NamedTuple):
    """Neighbouring buckets of one probability."""

    buckets: int
    positive: int
    labelled: int


class Probabilities:
    """Of one partition step: the table grows with its labels."""

    def __init__(self, tallies: Tallies, positive: LabelValue) -> None:
        self._tallies, self._positive = tallies, positive
        self._made: list[int] | None = None
        """Millionths by bucket; None once a label has come."""

    def said(self, prediction: Prediction, score: float, size: float) -> Prediction:
        """The prediction with its bucket and probability. `size`: sum of the sizes of the score's terms."""
        bucket = bucket_of(score, size)
        if self._made is None:
            table = self._tallies.epoch.reliability
            nothing = [0] * BUCKETS
            self._made = monotone(
                *((nothing, nothing) if table is UNSET else (table.labelled, table.positive))
            )
        return replace(prediction, bucket=bucket, probability=self._made[bucket] / MILLION)

    def judged(self, beside: Beside, label: LabelValue, *, of_epoch: bool) -> None:
        """Count a label; in the epoch's table only where its own model made the prediction."""
        if beside.bucket is None or beside.probability is None:
            return
        for tally in (self._tallies.life, self._tallies.epoch)[: 1 + of_epoch]:
            tally.of_reliability().count(beside.bucket, beside.probability, positive=label == self._positive)
        self._made = None


def bucket_of(score: float, size: float) -> int:
    """The bucket of a score's margin; of nothing it is 0, which is in the upper half."""
    margin = score / size if size > 0.0 and isfinite(size) else 0.0
    return min(BUCKETS - 1, max(0, int((margin + 1.0) * (BUCKETS / 2))))


def monotone(labelled: list[int], positive: list[int]) -> list[int]:
    """The probability of each bucket in millionths: rounded, never 0 or 1."""
    pools: list[_Pool] = []
    for count, found in zip(labelled, positive, strict=True):
        pool = _Pool(1, found + 1, count + 2)
        while pools and pools[-1].positive * pool.labelled > pool.positive * pools[-1].labelled:
            before = pools.pop()
            pool = _Pool(*(one + other for one, other in zip(before, pool, strict=True)))
        pools.append(pool)
    made: list[int] = []
    for pool in pools:
        millionths = (2 * MILLION * pool.positive + pool.labelled) // (2 * pool.labelled)
        made += [min(MILLION - 1, max(1, millionths))] * pool.buckets
    return made
