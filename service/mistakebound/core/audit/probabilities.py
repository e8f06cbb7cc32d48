"""Probabilities made again: the table from the decisions, each probability by another formula.

Isotonic regression is also a maximum of minima: over all runs of buckets that begin at or before the bucket, and end at
or behind it.
"""

from fractions import Fraction
from itertools import accumulate

from msgspec import UNSET

from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.reliability import BUCKETS, Reliability
from mistakebound.core.messages.tallies import Tally
from mistakebound.settings import LabelValue


def probability(table: Reliability | None, bucket: int) -> int:
    """Of the positive class, in millionths."""
    found = Reliability() if table is None else table
    ones = [0, *accumulate(count + 1 for count in found.positive)]
    all_of = [0, *accumulate(count + 2 for count in found.labelled)]
    share = max(
        min(
            Fraction(ones[end] - ones[begin], all_of[end] - all_of[begin])
            for end in range(bucket + 1, BUCKETS + 1)
        )
        for begin in range(bucket + 1)
    )
    return min(MILLION - 1, max(1, int(share * MILLION + Fraction(1, 2))))


def bucket_of(score: float, size: float) -> int:
    """The margin score/size from -1 to 1, in tenths from below."""
    if not 0.0 < size < float("inf"):
        return BUCKETS // 2
    tenths = (score / size + 1.0) * 10.0
    return next(bucket for bucket in range(BUCKETS) if tenths < bucket + 1 or bucket == BUCKETS - 1)


def count(tally: Tally, bucket: int, millionths: int, label: LabelValue, positive: LabelValue) -> None:
    """Count a label in the table of a tally."""
    if tally.reliability is UNSET:
        tally.reliability = Reliability()
    table, came = tally.reliability, int(label == positive)
    place = next(n for n in range(BUCKETS) if millionths * BUCKETS <= (n + 1) * MILLION)
    for counts, where, more in (
        (table.labelled, bucket, 1),
        (table.positive, bucket, came),
        (table.judged, place, 1),
        (table.happened, place, came),
        (table.predicted, place, millionths),
    ):
        counts[where] += more
    error = Fraction(millionths, MILLION) - came
    table.squares += int(error * error * 10**9 + Fraction(1, 2))
