"""Judged predictions by (actual, predicted), counted again one by one: names and pairs of names, no tables."""

from collections import Counter

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
)
from mistakebound.core.messages.schema import encode

Pair = tuple[str | None, str | None]


class Confusions:
    """Of life or of an epoch."""

    def __init__(self) -> None:
        self.classes: list[str | None] = []
        self._tabled = True
        self._labels: Counter[str | None] = Counter()
        self._model, self._majority = _Rule(), _Rule()
        self._differing = 0
        self.mistakes_at_label = 0

    def judged(
        self,
        actual: str,
        predicted: str | None,
        majority: str | None,
        before: str | None,
        *,
        classes_open: bool,
    ) -> None:
        """A prediction and its label. `before`: the label before it, or what stands for it."""
        named = self._name(actual)
        pairs = [(named, self._said(one, classes_open)) for one in (predicted, majority)]
        self._labels[named] += 1
        self._model.count(pairs[0], self.classes, correct=actual == predicted)
        self._majority.count(pairs[1], self.classes, correct=actual == majority)
        self._differing += actual != before

    def _said(self, name: str | None, classes_open: bool) -> str | None:
        """A predicted class; of open ones only so many are named before a label has them."""
        if name is not None and name not in self.classes and classes_open:
            strange = [one for one in self.classes if one is not None and one not in self._labels]
            if len(strange) == MOST_FOREIGN or _size([*strange, name]) > FOREIGN_BYTES:
                self._nameless()
                return None
        return self._name(name)

    def _name(self, name: str | None) -> str | None:
        if name in self.classes:
            return name
        if name is not None:
            names = [*(one for one in self.classes if one is not None), name]
            if len(names) > MOST_NAMED or _size(names) > NAMES_BYTES:
                self._nameless()
                return None
            if len(names) > MOST_TABLED:
                self._give_up_tables()
        self.classes.append(name)
        return name

    def _nameless(self) -> None:
        self._name(None)
        self._give_up_tables()

    def _give_up_tables(self) -> None:
        if self._tabled:
            self._tabled = False
            self._model.give_up_table(self.classes)
            self._majority.give_up_table(self.classes)

    def made(self) -> Confusion:
        """As the worker writes it."""
        labels = [] if self._tabled else [self._labels[name] for name in self.classes]
        rules = (self._model.made(self.classes), self._majority.made(self.classes))
        return Confusion(list(self.classes), labels, *rules, self._differing, self.mistakes_at_label)


class _Rule:
    """One rule's predictions: every pair, or from some time on totals and the most frequent confusions."""

    def __init__(self) -> None:
        self._pairs: Counter[Pair] | None = Counter()
        self._predicted: Counter[str | None] = Counter()
        self._correct: Counter[str | None] = Counter()
        self._frequent: dict[Pair, tuple[int, int]] = {}
        """Pair -> (count, by how much that may be too high)."""

    def count(self, pair: Pair, classes: list[str | None], *, correct: bool) -> None:
        if self._pairs is not None:
            self._pairs[pair] += 1
            return
        self._predicted[pair[1]] += 1
        if correct:
            self._correct[pair[0]] += 1
        elif pair in self._frequent:
            count, over = self._frequent[pair]
            self._frequent[pair] = count + 1, over
        elif len(self._frequent) < MOST_HELD:
            self._frequent[pair] = 1, 0
        else:
            least = self._ranked(classes)[-1]
            count, _ = self._frequent.pop(least)
            self._frequent[pair] = count + 1, count

    def _ranked(self, classes: list[str | None]) -> list[Pair]:
        """Most frequent first; of equal ones the class that came first, the actual one before the predicted one."""
        return sorted(
            self._frequent,
            key=lambda pair: (-self._frequent[pair][0], classes.index(pair[0]), classes.index(pair[1])),
        )

    def give_up_table(self, classes: list[str | None]) -> None:
        pairs, self._pairs = self._pairs, None
        assert pairs is not None
        for (actual, predicted), count in pairs.items():
            self._predicted[predicted] += count
            if actual == predicted:
                self._correct[actual] += count
            else:
                self._frequent[actual, predicted] = count, 0
        for pair in self._ranked(classes)[MOST_HELD:]:
            del self._frequent[pair]

    def made(self, classes: list[str | None]) -> Pairs:
        if self._pairs is not None:
            return Pairs([[self._pairs[actual, said] for said in classes] for actual in classes])
        held = [
            Held(classes.index(pair[0]), classes.index(pair[1]), *self._frequent[pair])
            for pair in self._ranked(classes)
        ]
        predicted, correct = ([of[name] for name in classes] for of in (self._predicted, self._correct))
        return Pairs([], predicted, correct, held)


def _size(names: list[str]) -> int:
    return sum(len(encode(name)) for name in names)
