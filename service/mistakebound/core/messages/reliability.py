"""How often predictions of each kind were right: the counts that probabilities are made of and judged by.

All are whole numbers, so that probabilities and their scores can be made again exactly, in any language. A probability
is published with six decimals, and is a whole number of millionths here.
"""

from msgspec import Struct, field

from mistakebound.core.messages.asking import MILLION

BUCKETS = 20
"""Of the signed margin from -1 to 1, and of probabilities from 0 to 1."""
BILLION = 1_000_000_000
_ROUNDED = 1_000
"""A squared error in billionths is that of millionths divided by this."""


def _zeros() -> list[int]:
    return [0] * BUCKETS


class Reliability(Struct):
    """Of labelled examples whose prediction had a probability."""

    labelled: list[int] = field(default_factory=_zeros)
    """By bucket of the margin."""
    positive: list[int] = field(default_factory=_zeros)
    """Those of them that were positive."""
    judged: list[int] = field(default_factory=_zeros)
    """By bucket of the probability that was published: from above its lower edge to its upper edge."""
    happened: list[int] = field(default_factory=_zeros)
    """Those of them that were positive."""
    predicted: list[int] = field(default_factory=_zeros)
    """Sums of their probabilities, in millionths."""
    squares: int = 0
    """Sum of the squares of (probability less 1 or 0), each rounded to billionths."""

    def __post_init__(self) -> None:
        for name in ("labelled", "positive", "judged", "happened", "predicted"):
            if len(getattr(self, name)) != BUCKETS:
                raise ValueError(f"{name} has not {BUCKETS} buckets")

    def copy(self) -> "Reliability":
        """An independent copy."""
        return Reliability(
            list(self.labelled),
            list(self.positive),
            list(self.judged),
            list(self.happened),
            list(self.predicted),
            self.squares,
        )

    @property
    def all_judged(self) -> int:
        """Labels that came to a probability."""
        return sum(self.judged)

    @property
    def all_positive(self) -> int:
        """Those of them that were positive."""
        return sum(self.happened)

    @property
    def expected_positive(self) -> float:
        """How many of them the probabilities expected."""
        return sum(self.predicted) / MILLION

    @property
    def squared_error(self) -> float:
        """Sum of the squares of (probability less 1 or 0)."""
        return self.squares / BILLION

    def count(self, bucket: int, millionths: int, *, positive: bool) -> None:
        """A label came to a prediction of this bucket of the margin and this probability."""
        self.labelled[bucket] += 1
        self.positive[bucket] += positive
        place = (millionths - 1) * BUCKETS // MILLION
        self.judged[place] += 1
        self.happened[place] += positive
        self.predicted[place] += millionths
        error = millionths - MILLION * positive
        self.squares += (2 * error * error + _ROUNDED) // (2 * _ROUNDED)
