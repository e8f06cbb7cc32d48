"""Labels: how a class is spelled, and what a label record may carry of its example."""

import json
import re
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from mistakebound.settings import LabelValue


@lru_cache(maxsize=4_096, typed=True)
def spelled(label: bool | int | str) -> str:
    """A class as metrics and tables spell it: `true`, `false`, `1`, `spam`."""
    return label if isinstance(label, str) else json.dumps(label)


class Carried(NamedTuple):
    """What a label record itself says of its example, for when the ledger no longer knows the example."""

    features: bytes
    """JSON text."""
    predicted: LabelValue | None
    """The published prediction, in the declared form; None where no class was known (open classes)."""
    tenant: str | None = None
    """None where `features.cross` is not set."""


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")


class TextLabels:
    """Labels in a text format without types (CSV, svmlight): the declared spelling decides which class is meant.

    1. The declared spelling itself; blanks around it do not count.
    2. Where classes are truth values, `true` and `false` in any case; and 1, 0 and -1, as on the stream.
    3. Equal numbers: `1.0`, `+1` and `1` are the class 1, and the class "1" where no other text is that number.
    """

    def __init__(self, classes: tuple[LabelValue, ...]) -> None:
        """`classes` as declared; empty where any text is a class, and taken as it is."""
        self._any = not classes
        self._texts: dict[str, LabelValue] = {spelled(value): value for value in classes}
        self._words: dict[str, bool] = {}
        numbers = [
            (number, value) for text, value in self._texts.items() if (number := as_number(text)) is not None
        ]
        once = Counter(number for number, _ in numbers)
        self._numbers: dict[Decimal, LabelValue] = {
            number: value for number, value in numbers if once[number] == 1
        }
        if {True, False} == set(classes) and all(type(value) is bool for value in classes):
            self._words = {"true": True, "false": False}
            if classes[0] is True:
                self._numbers = {Decimal(1): True, Decimal(0): False, Decimal(-1): False}

    def read(self, text: str) -> LabelValue | None:
        """The class that is meant; None where there is no text; the text itself where it means no class."""
        if self._any:
            return text or None
        if text in self._texts:
            return self._texts[text]
        text = text.strip()
        if text in self._texts:
            return self._texts[text]
        if (word := self._words.get(text.lower())) is not None:
            return word
        number = as_number(text)
        found = None if number is None else self._numbers.get(number)
        return (text or None) if found is None else found

    def means_a_class(self, text: str) -> bool:
        """Whether `read` finds one."""
        found = self.read(text)
        return self._any or any(type(found) is type(one) and found == one for one in self._texts.values())


def as_number(text: str) -> Decimal | None:
    """The finite number that a text spells in decimal digits, exactly."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None
