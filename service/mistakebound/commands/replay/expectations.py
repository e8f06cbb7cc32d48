"""Expectations of a report: `mistakes <= 200`, `labels.applied == 1250`, `mistake_rate < 0.2`."""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mistakebound.commands.errors import CommandError
from mistakebound.core.reporting.report import Report

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_ABSENT = object()
"""What a name leads to that no report has; null is what a report does not know."""
_FORM = re.compile(r"^\s*([a-z_][A-Za-z0-9_.-]*)\s*(<=|>=|==|!=|<|>)\s*(-?[0-9.]+(?:e-?[0-9]+)?)\s*$")


class Expectation:
    """One comparison of a number in a report."""

    def __init__(self, text: str) -> None:
        """Raises CommandError when the text has another form."""
        form = _FORM.match(text)
        if form is None:
            raise CommandError(f"--expect: {text!r} is not NAME OP NUMBER, as in 'mistakes <= 200'")
        self.text = text.strip()
        self._path, self._operator, number = form.groups()
        try:
            self._number = float(number)
        except ValueError:
            raise CommandError(f"--expect: {number!r} in {text!r} is not a number") from None

    def failure(self, report: Report) -> str | None:
        """What is wrong, or None. Raises CommandError for a name that no report has."""
        found: Any = report.as_dict()
        for part in self._path.split("."):
            found = found.get(part, _ABSENT) if isinstance(found, Mapping) else _ABSENT
            if found is None:
                break
        if found is None and part == "comparators":
            raise CommandError(f"--expect: {self.text!r} is about other rules; add --compare")
        if found is None:
            why = "the report does not know it" if report.labelled else "nothing was judged"
            return f"expected {self.text}, found null: {why}"
        if isinstance(found, bool) or not isinstance(found, int | float):
            near = _nearest(self._path, list(_numbers("", report.as_dict())))
            meant = "" if near is None else f"did you mean {near}? "
            raise CommandError(
                f"--expect: the report has no number {self._path!r}; {meant}--report - prints what it has"
            )
        holds = _OPERATORS[self._operator](found, self._number)
        return None if holds else f"expected {self.text}, found {found}"


def _numbers(path: str, report: Mapping[str, Any]) -> Iterator[str]:
    """Names of all that may be expected."""
    for key, value in report.items():
        if isinstance(value, Mapping):
            yield from _numbers(f"{path}{key}.", value)
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield f"{path}{key}"


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The first one with the same last word, as `recall` is that of `confusion.model.measures.recall`; or one nearly alike."""
    last = name.rpartition(".")[2]
    alike = [one for one in names if one.rpartition(".")[2] == last]
    found = difflib.get_close_matches(name, alike, n=1, cutoff=0) or difflib.get_close_matches(
        name, names, n=1
    )
    return found[0] if found else None
