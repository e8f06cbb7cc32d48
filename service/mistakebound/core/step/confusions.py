"""Adding judged predictions to a `Confusion`: label after label, whatever the steps, so that one log has one count."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, UnsetType

from mistakebound.core.messages.confusion import (
    FOREIGN_BYTES,
    MOST_FOREIGN,
    MOST_HELD,
    MOST_NAMED,
    MOST_TABLED,
    NAMES_BYTES,
    Confusion,
    Held,
    Pairs,
    totals_by_class,
)
from mistakebound.core.messages.costs import Costs
from mistakebound.core.messages.schema import encode
from mistakebound.core.step.facts import ConfusionTotals

Judged = tuple[str, str | None, str | None, bool]
"""Class of the label, of the published prediction, and of the majority so far; whether the label before was another."""


def add(confusion: Confusion, judged: Sequence[tuple[Judged, int]], *, classes_open: bool) -> None:
    """Count these, each so many times, in their order. Beyond 20 classes that must be label after label."""
    places = _Places(confusion, classes_open)
    held: list[dict[tuple[int, int], Held]] = []
    model, majority = confusion.model, confusion.majority
    for (actual, predicted, leader, differs), times in judged:
        row = places.of(actual)
        said, led = places.of(predicted, foreign=True), places.of(leader, foreign=True)
        if differs:
            confusion.last_label_mistakes += times
        if not confusion.actual:
            model.table[row][said] += times
            majority.table[row][led] += times
            continue
        if not held:
            held = [_by_place(model), _by_place(majority)]
        confusion.actual[row] += times
        _add(model, held[0], row, said, actual == predicted, times)
        _add(majority, held[1], row, led, actual == leader, times)
    if held:
        model.held.sort(key=_order)
        majority.held.sort(key=_order)


def counted(
    confusion: Confusion, judged: Iterable[Judged], together: Mapping[Judged, int]
) -> Sequence[tuple[Judged, int]]:
    """Where their order does not matter, each with how often it came, as `together` has it; else all, in their order.

    Equal ones counted at once save 0.2 us a label (compiled 0.1).
    """
    names = {name for one in together for name in one[:3] if name is not None}
    names.update(name for name in confusion.classes if name is not None)
    if confusion.actual or len(names) > MOST_TABLED or sum(map(_bytes, names)) > NAMES_BYTES:
        return [(one, 1) for one in judged]
    return list(together.items())


def totals_of(confusion: Confusion | UnsetType, costs: Costs | None) -> ConfusionTotals:
    """What is told of a partition's counts."""
    if confusion is UNSET:
        return ConfusionTotals()
    names = ["none" if name is None else name for name in confusion.classes]
    (labelled, predicted, correct), majority = (
        totals_by_class(confusion, pairs) for pairs in (confusion.model, confusion.majority)
    )
    compared = sum(labelled)
    pairs, majority_pairs = _cells(names, confusion.model), _cells(names, confusion.majority)
    return ConfusionTotals(
        compared=compared,
        mistakes={
            "model": compared - sum(correct),
            "majority": compared - sum(majority[2]),
            "label_before": confusion.last_label_mistakes,
            "at_label": confusion.mistakes_at_label,
        },
        pairs=pairs,
        majority_pairs=majority_pairs,
        costs={}
        if costs is None or not confusion.tabled
        else {
            "model": costs.total((*pair, count) for pair, count in pairs.items()),
            "majority": costs.total((*pair, count) for pair, count in majority_pairs.items()),
        },
        labelled=dict(zip(names, labelled, strict=True)),
        predicted=dict(zip(names, predicted, strict=True)),
        correct=dict(zip(names, correct, strict=True)),
    )


def _cells(names: Sequence[str], pairs: Pairs) -> dict[tuple[str, str], int]:
    return {
        (names[row], names[column]): count
        for row, counts in enumerate(pairs.table)
        for column, count in enumerate(counts)
        if count
    }


class _Places:
    """The place of each class. A new one comes last; one too many is counted as null."""

    def __init__(self, confusion: Confusion, classes_open: bool) -> None:
        self._confusion, self._open = confusion, classes_open
        self._places = {name: place for place, name in enumerate(confusion.classes)}

    def of(self, name: str | None, *, foreign: bool = False) -> int:
        """`foreign`: no label, but a prediction."""
        found = self._places.get(name)
        return self._new(name, foreign) if found is None else found

    def _new(self, name: str | None, foreign: bool) -> int:
        confusion = self._confusion
        if name is not None:
            named = [one for one in confusion.classes if one is not None]
            if self._too_many([*named, name], MOST_NAMED, NAMES_BYTES) or (
                foreign and self._open and self._too_many(self._foreign(name), MOST_FOREIGN, FOREIGN_BYTES)
            ):
                place = self.of(None)
                _without_table(confusion)
                return place
            if len(named) == MOST_TABLED:
                _without_table(confusion)
        place = self._places[name] = len(confusion.classes)
        confusion.classes.append(name)
        wide = bool(confusion.actual)
        if wide:
            confusion.actual.append(0)
        for pairs in (confusion.model, confusion.majority):
            if wide:
                pairs.predicted.append(0)
                pairs.correct.append(0)
                continue
            for row in pairs.table:
                row.append(0)
            pairs.table.append([0] * len(confusion.classes))
        return place

    def _foreign(self, name: str) -> list[str]:
        """With this one, the classes that no label had."""
        confusion = self._confusion
        labels = confusion.actual or [sum(row) for row in confusion.model.table]
        classes = zip(confusion.classes, labels, strict=True)
        return [*(one for one, count in classes if one is not None and not count), name]

    def _too_many(self, names: list[str], most: int, most_bytes: int) -> bool:
        return len(names) > most or sum(map(_bytes, names)) > most_bytes


def _bytes(name: str) -> int:
    return len(encode(name))


def _without_table(confusion: Confusion) -> None:
    """Replace the tables by totals and the most frequent confusions."""
    if confusion.actual:
        return
    confusion.actual = [sum(row) for row in confusion.model.table]
    for pairs in (confusion.model, confusion.majority):
        table = pairs.table
        pairs.predicted = [sum(column) for column in zip(*table, strict=True)]
        pairs.correct = [row[place] for place, row in enumerate(table)]
        cells = [
            Held(row, column, count)
            for row, counts in enumerate(table)
            for column, count in enumerate(counts)
            if count and row != column
        ]
        pairs.held = sorted(cells, key=_order)[:MOST_HELD]
        pairs.table = []


def _add(
    pairs: Pairs, held: dict[tuple[int, int], Held], row: int, column: int, correct: bool, times: int
) -> None:
    pairs.predicted[column] += times
    if correct:
        pairs.correct[row] += times
        return
    known = held.get((row, column))
    if known is not None:
        known.count += times
        return
    if len(pairs.held) < MOST_HELD:
        made = Held(row, column, times)
        pairs.held.append(made)
    else:  # it takes the place of the rarest, and may have come as often before as that one
        rarest = max(pairs.held, key=_order)
        del held[rarest.actual, rarest.predicted]
        made = Held(row, column, rarest.count + times, rarest.count)
        pairs.held[pairs.held.index(rarest)] = made
    held[row, column] = made


def _by_place(pairs: Pairs) -> dict[tuple[int, int], Held]:
    return {(one.actual, one.predicted): one for one in pairs.held}


def _order(one: Held) -> tuple[int, int, int]:
    """Most frequent first, then by place."""
    return -one.count, one.actual, one.predicted
