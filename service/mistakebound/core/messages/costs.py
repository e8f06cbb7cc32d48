"""What mistakes cost, by the class that was true and the one predicted: `labels.costs`.

A cost is the decimal number that it is written as, and so is their sum, rounded to a float once: the same counts cost
the same on every machine, in any order.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import permutations

from mistakebound.core.messages.confusion import MOST_TABLED
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.labels import spelled
from mistakebound.settings import LabelSettings, LabelValue

FALSE_POSITIVE, FALSE_NEGATIVE = "false_positive", "false_negative"
UNSAID = 1.0
"""The cost of a mistake that `labels.costs` does not name."""


class Costs:
    """Classes are spelled as tables do."""

    def __init__(self, named: dict[tuple[str, str], float], names: tuple[str, ...]) -> None:
        """`named`: (true class, predicted class) -> cost; `names`: the declared classes."""
        self._named = named
        every = [named.get(pair, UNSAID) for pair in permutations(names, 2)]
        self.least, self.most = min(every), max(every)
        """Of any mistake there can be."""

    def of(self, actual: LabelValue, predicted: LabelValue | None) -> float:
        """The cost of predicting this for a label that says that."""
        return self._named.get((spelled(actual), "" if predicted is None else spelled(predicted)), UNSAID)

    def total(self, pairs: Iterable[tuple[str | None, str | None, int]]) -> float:
        """(true class, predicted class, how often): the cost of those that differ, exact but for one rounding."""
        exact = Fraction(0)
        for actual, predicted, count in pairs:
            if actual != predicted:
                cost = self._named.get((actual or "", predicted or ""), UNSAID)
                exact += count * Fraction(repr(cost))
        return float(exact)


def costs_of(labels: LabelSettings) -> Costs | None:
    """None where none are given. Raises ValueError, saying which key is wrong and what it must be."""
    given, classes = labels.costs, [spelled(each) for each in declared(labels)]
    if given is None:
        return None
    if not 2 <= len(classes) <= MOST_TABLED:
        raise ValueError(
            f"needs two to {MOST_TABLED} declared classes: of more, and of open ones, not each pair is counted"
        )
    named: dict[tuple[str, str], float] = {}
    if len(classes) == 2:
        positive, negative = classes
        pairs = {FALSE_POSITIVE: (negative, positive), FALSE_NEGATIVE: (positive, negative)}
        for key, cost in given.items():
            if key not in pairs or isinstance(cost, dict):
                raise ValueError(
                    f"{key}: of two classes, give {FALSE_POSITIVE} and {FALSE_NEGATIVE} a number"
                )
            named[pairs[key]] = cost
        return Costs(named, tuple(classes))
    for actual, row in given.items():
        if actual not in classes:
            raise ValueError(f"{actual}: is none of the classes {', '.join(classes)}")
        if not isinstance(row, dict):
            raise ValueError(f"{actual}: give each true class a table, predicted class to cost")
        for predicted, cost in row.items():
            if predicted not in classes or predicted == actual:
                raise ValueError(f"{actual}.{predicted}: must be another one of the classes")
            named[actual, predicted] = cost
    return Costs(named, tuple(classes))
