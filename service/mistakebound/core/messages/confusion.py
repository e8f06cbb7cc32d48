"""Judged predictions by (actual, predicted): the worker's, and those of always predicting the majority so far.

Up to 20 classes every pair has its count, in a table. With more (or with names that are too long together) each class
has its totals instead, which is all that precision, recall, F1, balanced accuracy and kappa need, and of the confusions
those that came most often are held, by Space-Saving (Metwally, Agrawal & El Abbadi, ICDT 2005).
"""

from collections.abc import Sequence
from copy import copy

from msgspec import Struct, field

MOST_TABLED = 20
"""Classes up to which every pair is counted."""
MOST_HELD = 100
"""Confusions held of more classes."""
MOST_NAMED, NAMES_BYTES = 1_000, 50_000
"""Classes counted under their names, and bytes of these names as JSON. What goes beyond is counted as null."""
MOST_FOREIGN, FOREIGN_BYTES = 20, 5_000
"""The same of open classes that were predicted here, and that no label had yet: other partitions' labels had them."""


class Held(Struct, array_like=True):
    """One confusion of many classes: places of the actual and the predicted class in `classes`, and its count.

    The count may be too high by `over`, never too low. A confusion that is not held came at most as often as the
    lowest count says, while `MOST_HELD` are held, and never while there are fewer.
    """

    actual: int
    predicted: int
    count: int
    over: int = 0


class Pairs(Struct, omit_defaults=True):
    """One rule's predictions. Either the table, or what replaces it: then all numbers by class are in the order of `classes`."""

    table: list[list[int]] = []
    """A row for each actual class, a column for each predicted one."""
    predicted: list[int] = []
    correct: list[int] = []
    held: list[Held] = []
    """Most frequent first; of equal ones, by place of the actual class, then of the predicted one."""

    def copy(self) -> "Pairs":
        """An independent copy."""
        held = [copy(one) for one in self.held]
        return Pairs([list(row) for row in self.table], list(self.predicted), list(self.correct), held)


class Confusion(Struct, omit_defaults=True):
    """Counts since they were begun: earlier versions did not write them, so there may be fewer than labels applied.

    Of an epoch only the predictions made in it are counted.
    """

    classes: list[str | None] = []
    """In the order in which they came, each spelled as tables do. Null: no class was known yet (open classes)."""
    actual: list[int] = []
    """Labels by class, where there is no table."""
    model: Pairs = field(default_factory=Pairs)
    majority: Pairs = field(default_factory=Pairs)
    last_label_mistakes: int = 0
    """Mistakes of always predicting the class of the partition's newest label."""
    mistakes_at_label: int = 0
    """Mistakes of what the model says when the label comes, before it learns from it."""

    @property
    def tabled(self) -> bool:
        """Whether every pair is counted."""
        return not self.actual

    def copy(self) -> "Confusion":
        """An independent copy."""
        return Confusion(
            list(self.classes),
            list(self.actual),
            self.model.copy(),
            self.majority.copy(),
            self.last_label_mistakes,
            self.mistakes_at_label,
        )


def totals_by_class(confusion: Confusion, pairs: Pairs) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """By class, in the confusion's order: labels, predictions, and both at once."""
    if not confusion.tabled:
        return confusion.actual, pairs.predicted, pairs.correct
    table = pairs.table
    return (
        [sum(row) for row in table],
        [sum(column) for column in zip(*table, strict=True)],
        [row[place] for place, row in enumerate(table)],
    )
