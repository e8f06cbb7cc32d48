"""Whether probabilities were true: the reliability diagram and the Brier score, from the counts of partitions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.reliability import BILLION, BUCKETS
from mistakebound.core.messages.tallies import Tally


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Labelled predictions whose probability was above `low`, up to `high`."""

    low: float
    high: float
    labelled: int
    positive: int
    predicted: float | None
    """Mean of their probabilities; None where there are none."""
    observed: float | None
    """Share of them that were positive."""


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Published probabilities of the positive class, judged by their labels."""

    labelled: int
    brier_score: float | None
    """Mean of the squares of (probability less 1 or 0); the smaller the better. Each square is rounded to billionths."""
    brier_score_of_share: float | None
    """The same if each probability had been the share of positives, which is known only afterwards."""
    bins: tuple[ReliabilityBin, ...]
    """In ascending order, empty ones included."""


def probabilities(tallies: Iterable[Tally]) -> Probabilities | None:
    """Of these partitions together; None where no probability was judged."""
    found = [one.reliability for one in tallies if one.reliability is not UNSET]
    if not found:
        return None
    judged, positive, predicted = (
        _sum([getattr(one, name) for one in found]) for name in ("judged", "happened", "predicted")
    )
    count, share = sum(judged), _share(sum(positive), sum(judged))
    return Probabilities(
        labelled=count,
        brier_score=_share(sum(one.squares for one in found), BILLION * count),
        brier_score_of_share=None if share is None else share * (1 - share),
        bins=tuple(
            ReliabilityBin(
                n / BUCKETS,
                (n + 1) / BUCKETS,
                judged[n],
                positive[n],
                _share(predicted[n], MILLION * judged[n]),
                _share(positive[n], judged[n]),
            )
            for n in range(BUCKETS)
        ),
    )


def _sum(lists: Sequence[list[int]]) -> list[int]:
    return [sum(each) for each in zip(*lists, strict=True)]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
