"""Which labels a file holds, to say which settings declare them."""

import re
from collections.abc import Callable
from typing import Any

from mistakebound.config.keys import render_toml

MOST = 20
"""More labels than these are hardly classes."""
_POSITIVE = ("yes", "y", "true", "t", "on", "positive", "pos", "1")


class LabelsSeen:
    """Shown every label as the file spells it, it knows the different ones, and on which line each came first."""

    def __init__(self, declared: str, is_class: Callable[[Any], bool], *, typed: bool) -> None:
        """`declared` shows the declared classes; `is_class` tells whether a label is one of them.

        `typed`: the file tells the text "1" from the number 1.
        """
        self._declared, self._is_class, self._typed = declared, is_class, typed
        self._lines: dict[tuple[type, Any], int] = {}

    def see(self, label: Any, line: int) -> None:
        """A row has this label."""
        if len(self._lines) <= MOST and type(label) in (str, bool, int, float) and label != "":
            self._lines.setdefault((type(label), label), line)

    def advice(self) -> str | None:
        """What to declare; None where every label was declared."""
        unknown = [(label, line) for (_, label), line in self._lines.items() if not self._is_class(label)]
        if not unknown:
            return None
        label, line = unknown[0]
        said = f"line {line}: the label {_shown(label)} is none of the declared classes, {self._declared}"
        labels = _as_declared([label for _, label in self._lines], typed=self._typed)
        if labels is None:
            return f"{said}; a class is text, an integer, or a truth value"
        if len(labels) == 2:
            positive, negative = labels
            sets = (
                f"--set {_quoted('labels.positive', positive)} --set {_quoted('labels.negative', negative)}"
            )
            return f"{said}. The file has two labels: add {sets} (or the other way round)"
        if 2 < len(labels) <= MOST:
            return f"{said}. The file has {len(labels)} labels: add --set {_quoted('labels.classes', labels)}"
        if len(labels) > MOST:
            return f"{said}. The file has more than {MOST} labels: are they classes? labels.classes declares them"
        return f"{said}; labels.positive, labels.negative and labels.classes declare others"


def _as_declared(labels: list[Any], *, typed: bool) -> list[Any] | None:
    """In the form in which settings declare them, the likelier positive one first; None for what no class can be."""
    kinds = set(map(type, labels))
    if kinds == {str} and not typed and all(re.fullmatch("0|-?[1-9][0-9]*", label) for label in labels):
        labels, kinds = [int(label) for label in labels], {int}
    if kinds == {str}:
        return sorted(labels, key=lambda label: (label.lower() not in _POSITIVE, label))
    if kinds == {int}:
        return sorted(labels, reverse=len(labels) == 2)
    return labels if kinds == {bool} else None


def _quoted(key: str, value: Any) -> str:
    """A setting as a shell takes it."""
    text = f"{key}={render_toml(value)}"
    return "'" + text.replace("'", "'\\''") + "'"


def _shown(label: Any) -> str:
    return render_toml(label)[:60]
