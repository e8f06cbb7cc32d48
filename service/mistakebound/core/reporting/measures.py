"""What a confusion comes to: precision, recall and the like, each from whole numbers by one division.

Of two classes they are of the positive one. Of more, each is the mean over the classes for which it is defined.
Undefined is None: of nothing there is no share.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from msgspec import UNSET

from mistakebound.core.messages.confusion import MOST_HELD, MOST_TABLED, Confusion, Pairs, totals_by_class
from mistakebound.core.messages.costs import Costs
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.tallies import Tally
from mistakebound.settings import LabelValue

MOST_SHOWN = 20
"""Confusions listed."""


@dataclass(frozen=True, slots=True)
class OfClass:
    """One class against all others."""

    labelled: int
    predicted: int
    correct: int
    precision: float | None
    recall: float | None
    f1: float | None
    specificity: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """Of one rule's predictions."""

    precision: float | None
    recall: float | None
    f1: float | None
    specificity: float | None
    balanced_accuracy: float | None
    """The mean of the classes' recalls."""
    kappa: float | None
    """Cohen's: how far the agreement with the labels is beyond that of chance with the same frequencies."""
    kappa_m: float | None
    """The share of the mistakes of always-the-majority that the rule avoids (MOA's kappa M)."""
    kappa_t: float | None
    """The share of the mistakes of predicting the newest label that it avoids (MOA's kappa temporal)."""


@dataclass(frozen=True, slots=True)
class Confused:
    """Predictions of one class whose label said another."""

    actual: str | None
    predicted: str | None
    at_least: int
    at_most: int
    """More than `at_least` only with more than 20 classes."""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What one rule predicted."""

    mistakes: int
    table: tuple[tuple[int, ...], ...] | None
    """A row for each actual class, a column for each predicted one; None with more than 20."""
    largest: tuple[Confused, ...]
    """The confusions that came most often."""
    measures: Measures
    cost: float | None = None
    """Of the mistakes, where `labels.costs` says what they cost."""


@dataclass(frozen=True, slots=True)
class ConfusionReport:
    """Judged predictions by (actual, predicted), of all partitions together."""

    judged: int
    unknown: int
    """Judged by earlier versions, which did not count so: in none of these numbers."""
    positive: str | None
    """The class that measures speak of; None where they are means over the classes."""
    classes: tuple[str | None, ...]
    """In the declared order; others by name; null, where there was no class to predict, last."""
    model: RuleReport
    majority: RuleReport
    """Always predicting the class that was most frequent in the partition so far."""
    last_label_mistakes: int
    """Of always predicting the class of the partition's newest label."""
    mistakes_at_label: int
    """Of what the model says when the label comes, before it learns from it."""
    mistakes_by_delay: int
    """What waiting for labels cost: mistakes of the published predictions less those at the label. It may be below 0."""
    by_class: Mapping[str, OfClass]
    """Of the model's predictions."""


def confusion_report(
    tallies: Iterable[Tally],
    classes: Sequence[LabelValue],
    judged: int | None = None,
    costs: Costs | None = None,
) -> ConfusionReport:
    """The tallies' confusions added up. `classes` as declared; `judged`: how many there were in all, counted so or not."""
    found = [tally.confusion for tally in tallies if tally.confusion is not UNSET]
    declared = [spelled(each) for each in classes]
    names = _in_order({name for one in found for name in one.classes}, declared)
    model = _Sum([(one, one.model) for one in found], names)
    majority = _Sum([(one, one.majority) for one in found], names)
    last = sum(one.last_label_mistakes for one in found)
    positive = declared[0] if len(declared) == 2 and {*names, None} <= {*declared, None} else None

    def told(rule: _Sum) -> RuleReport:
        measures = rule.measures(positive, majority.mistakes, last)
        return RuleReport(rule.mistakes, rule.table(), rule.largest(), measures, rule.cost(costs))

    at_label = sum(one.mistakes_at_label for one in found)
    return ConfusionReport(
        judged=model.judged,
        unknown=0 if judged is None else judged - model.judged,
        positive=positive,
        classes=tuple(names),
        model=told(model),
        majority=told(majority),
        last_label_mistakes=last,
        mistakes_at_label=at_label,
        mistakes_by_delay=model.mistakes - at_label,
        by_class={name: each for name, each in model.by_class().items() if name is not None},
    )


def _in_order(names: set[str | None], declared: Sequence[str]) -> list[str | None]:
    known = [name for name in declared if name in names]
    others = sorted(name for name in names if name is not None and name not in known)
    return [*known, *others, *([None] if None in names else [])]


class _Sum:
    """One rule's counts in several partitions, added up by class."""

    def __init__(self, parts: Sequence[tuple[Confusion, Pairs]], names: Sequence[str | None]) -> None:
        self._parts, self._names = parts, names
        self._actual, self._predicted, self._correct = (dict.fromkeys(names, 0) for _ in range(3))
        for confusion, pairs in parts:
            actual, predicted, correct = totals_by_class(confusion, pairs)
            for place, name in enumerate(confusion.classes):
                self._actual[name] += actual[place]
                self._predicted[name] += predicted[place]
                self._correct[name] += correct[place]
        self.judged = sum(self._actual.values())
        self.mistakes = self.judged - sum(self._correct.values())

    def table(self) -> tuple[tuple[int, ...], ...] | None:
        if not all(confusion.tabled for confusion, _ in self._parts):
            return None
        if len([name for name in self._names if name is not None]) > MOST_TABLED:
            return None
        cells = self._cells()
        return tuple(
            tuple(cells.get((actual, said), (0, 0))[0] for said in self._names) for actual in self._names
        )

    def largest(self) -> tuple[Confused, ...]:
        places = {name: place for place, name in enumerate(self._names)}
        cells = [
            Confused(*pair, *count)
            for pair, count in self._cells().items()
            if count[1] and (pair[0] != pair[1] or pair[0] is None)
        ]
        cells.sort(key=lambda one: (-one.at_least, -one.at_most, places[one.actual], places[one.predicted]))
        return tuple(cells[:MOST_SHOWN])

    def _cells(self) -> dict[tuple[str | None, str | None], tuple[int, int]]:
        """Pair -> (at least, at most) so often."""
        found: dict[tuple[str | None, str | None], tuple[int, int]] = {}
        for confusion, pairs in self._parts:
            for pair, count in _cells(confusion, pairs).items():
                known = found.get(pair, (0, 0))
                found[pair] = known[0] + count[0], known[1] + count[1]
        for (
            confusion,
            pairs,
        ) in self._parts:  # what a partition does not hold may have come, where it holds all it can
            if len(pairs.held) == MOST_HELD:
                held, rarest = _cells(confusion, pairs), pairs.held[-1].count
                for pair in found.keys() - held.keys():
                    if pair[0] in confusion.classes and pair[1] in confusion.classes:
                        found[pair] = found[pair][0], found[pair][1] + rarest
        return found

    def cost(self, costs: Costs | None) -> float | None:
        """Exact: with costs there are at most 20 declared classes. None where an older epoch had too many more."""
        if costs is None or not all(confusion.tabled for confusion, _ in self._parts):
            return None
        return costs.total((*pair, count) for pair, (count, _) in self._cells().items())

    def by_class(self) -> dict[str | None, OfClass]:
        return {name: self._of(name) for name in self._names}

    def _of(self, name: str | None) -> OfClass:
        labelled, predicted, correct = (
            of.get(name, 0) for of in (self._actual, self._predicted, self._correct)
        )
        others = self.judged - labelled
        return OfClass(
            labelled,
            predicted,
            correct,
            _share(correct, predicted),
            _share(correct, labelled),
            _share(2 * correct, labelled + predicted),
            _share(others - (predicted - correct), others),
        )

    def measures(self, positive: str | None, majority: int, last: int) -> Measures:
        of = [each for name, each in self.by_class().items() if name is not None]
        asked = of if positive is None else [self._of(positive)]
        by_chance = sum(self._actual[name] * self._predicted[name] for name in self._names)
        beyond = self.judged * (self.judged - self.mistakes) - by_chance
        return Measures(
            precision=_mean(one.precision for one in asked),
            recall=_mean(one.recall for one in asked),
            f1=_mean(one.f1 for one in asked),
            specificity=_mean(one.specificity for one in asked),
            balanced_accuracy=_mean(one.recall for one in of),
            kappa=_share(beyond, self.judged**2 - by_chance),
            kappa_m=_share(majority - self.mistakes, majority),
            kappa_t=_share(last - self.mistakes, last),
        )


def _cells(confusion: Confusion, pairs: Pairs) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    names = confusion.classes
    if confusion.tabled:
        return {
            (names[row], names[column]): (count, count)
            for row, counts in enumerate(pairs.table)
            for column, count in enumerate(counts)
            if count
        }
    return {
        (names[one.actual], names[one.predicted]): (one.count - one.over, one.count) for one in pairs.held
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return fsum(known) / len(known) if known else None


NOTHING_JUDGED = confusion_report((), ())
"""Of no tally."""
