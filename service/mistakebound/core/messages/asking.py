"""Labels asked for: what a prediction says of that, and what is counted (`labels.ask`).

An example whose label is asked for with probability p stands for 1/p examples: its weight, which makes a sum over
those asked for an unbiased estimate of the sum over all. Weights are whole numbers of millionths, so that their sum is
exact: the same in any order, in any language, over any partitions.
"""

from sys import float_info

from msgspec import Struct

MILLION = 1_000_000
MOST_WEIGHT = 10**15
"""In millionths. So unlikely an example is asked for once in a thousand million times."""
MOST_ESTIMATE = 2**63 - 1
"""The largest sum that every reader of JSON integers of 64 bits takes."""


class Asked(Struct):
    """Counts of examples that were predicted while labels were asked for, and that have ended since."""

    labelled: int = 0
    """Asked for, and the label came."""
    missing: int = 0
    """Asked for, and given up: expired or evicted."""
    unasked_labelled: int = 0
    """Not asked for, and the label came all the same: it is judged, and not learned from."""
    unasked_missing: int = 0
    mistakes: int = 0
    """Mistakes among the labels asked for."""
    estimate: int = 0
    """Sum of their weights in millionths: all mistakes, as estimated."""
    radius: float = 0.0
    """Largest length of a labelled example, in the learner's own space: the R of the theorem. JSON has no infinity, so
    one that is infinite is the largest float: its square is infinite again, and no bound follows from it."""

    @property
    def estimated_mistakes(self) -> float:
        """Among all these examples."""
        return self.estimate / MILLION

    def measure(self, length: float) -> None:
        """A labelled example has this length."""
        self.radius = max(self.radius, min(length, float_info.max))

    def count(self, weight: int, *, labelled: bool, mistaken: bool) -> None:
        """An example has ended."""
        if not weight:
            self.unasked_labelled += labelled
            self.unasked_missing += not labelled
            return
        self.labelled += labelled
        self.missing += not labelled
        if labelled and mistaken:
            self.mistakes += 1
            self.estimate = min(MOST_ESTIMATE, self.estimate + weight)
