"""How examples and labels can end, and the counts of that for one partition."""

from copy import copy
from typing import Literal, get_args

from msgspec import Struct

ExampleOutcome = Literal["labelled", "expired", "evicted", "duplicate", "invalid"]
LabelOutcome = Literal["applied", "applied_late", "duplicate", "conflict", "expired", "unmatched", "invalid"]
EXAMPLE_OUTCOMES: tuple[ExampleOutcome, ...] = get_args(ExampleOutcome)
LABEL_OUTCOMES: tuple[LabelOutcome, ...] = get_args(LabelOutcome)


class Tally(Struct):
    """Counts of one partition. Examples consumed = the sum of their outcomes + those waiting; labels likewise, + those parked."""

    examples: dict[str, int]
    labels: dict[str, int]
    mistakes: int = 0
    updates: int = 0
    majority_mistakes: int = 0
    """Mistakes of always predicting the class that was most frequent so far."""
    actual: dict[str, int] = {}
    """Labels applied, by class, spelled as JSON."""
    outstanding: int = 0
    """Most examples waiting in the partition when a label was applied, the labelled one included."""

    def __post_init__(self) -> None:
        self.labels.setdefault("applied_late", 0)  # earlier versions did not write it
        missing = {"consumed", *EXAMPLE_OUTCOMES} - self.examples.keys()
        missing |= {"consumed", *LABEL_OUTCOMES} - self.labels.keys()
        if missing:
            raise ValueError(f"the counts lack {', '.join(sorted(missing))}")

    @property
    def judged(self) -> int:
        """Predictions judged by their label, from memory or from the label record's own content."""
        return self.labels["applied"] + self.labels["applied_late"]

    def copy(self) -> "Tally":
        """An independent copy."""
        twin = copy(self)
        twin.examples, twin.labels, twin.actual = dict(self.examples), dict(self.labels), dict(self.actual)
        return twin


class Tallies(Struct):
    """Counts since the partition's first record, and since the epoch began."""

    life: Tally
    epoch: Tally


def zero() -> Tally:
    """Nothing counted yet."""
    return Tally(
        dict.fromkeys(("consumed", *EXAMPLE_OUTCOMES), 0), dict.fromkeys(("consumed", *LABEL_OUTCOMES), 0)
    )
