"""JSON Lines: `{"id": ..., "features": ..., "label": ...}` on each line, each value by the rules of the stream."""

import json
from collections.abc import Iterator
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.labels_seen import LabelsSeen
from mistakebound.commands.labelled_files.text_lines import TextLines, wrong_line
from mistakebound.core.messages.inputs import resolve
from mistakebound.core.replay.replay import Row


class _Line(msgspec.Struct, gc=False):
    """Features are kept as JSON text: the worker's step reads them. A tenant is read only where one is asked for."""

    features: Raw
    label: Any
    id: Any = None
    tenant: Any = None


MOST_DIGITS = 18
"""No line has a number with more."""

_decode_line = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class JsonRows:
    """Reads rows; where one has no id, its line's number is it."""

    def __init__(self, columns: Columns, seen: LabelsSeen) -> None:
        self._seen = seen
        self._pointers: list[str] | None = None
        if columns != Columns():
            features = columns.features[0] if columns.features else "features"
            names = [columns.id or "id", features, columns.label or "label"]
            self._pointers = list(
                map(_pointer, names if columns.tenant is None else [*names, columns.tenant])
            )
        self._numbered, self._in_digits = _Range(), _Range()

    def rows(self, lines: TextLines) -> Iterator[Row]:
        """All rows of a file. Raises CommandError."""
        self._numbered, self._in_digits = _Range(), _Range()
        while True:
            number = lines.begin_row()
            text = next(lines, None)
            if text is None:
                return
            if text.strip():
                yield self._row(number, text)

    def row_at(self, lines: TextLines, place: int) -> Row:  # noqa: ARG002 - a row's line is its number
        """The row on the next line."""
        number = lines.begin_row()
        return self._row(number, next(lines))

    def _row(self, number: int, text: str) -> Row:
        try:
            line = _decode_line(text) if self._pointers is None else _pointed(text, self._pointers)
            _refuse_twice(text, line.features)
        except msgspec.ValidationError as error:
            what = f"it is not an object with features and label: {error}"
            raise wrong_line(number, what, "add what is missing") from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise wrong_line(number, f"it is not JSON: {error}", "write one JSON object a line") from None
        except _Twice as name:
            raise wrong_line(number, f"an object has {name} twice", "leave one out") from None
        self._seen.see(line.label, number)
        return Row(self._id(number, line.id), line.features, line.label, number, line.tenant)

    def _id(self, number: int, found: Any) -> str:
        """As on the stream, where null is the same as nothing. A line without one is numbered."""
        if found is None:
            self._numbered.take(number)
            record_id = str(number)
        elif type(found) not in (str, int) or found == "":
            shown = msgspec.json.encode(found).decode()[:60]
            raise wrong_line(number, f"id is {shown}", "an id is text, or an integer")
        else:
            record_id = str(found)
            if record_id.isascii() and record_id.isdecimal() and len(record_id) <= MOST_DIGITS:
                self._in_digits.take(int(record_id))
        if self._numbered.overlaps(self._in_digits):
            what = f"the id {record_id} may be that of another line: lines without an id are numbered"
            raise wrong_line(number, what, "give every line an id, or none")
        return record_id


class _Range:
    """From the least to the largest of some numbers."""

    def __init__(self) -> None:
        self._least, self._most = inf, -inf

    def take(self, number: int) -> None:
        self._least, self._most = min(self._least, number), max(self._most, number)

    def overlaps(self, other: "_Range") -> bool:
        return self._least <= other._most and other._least <= self._most


def _pointer(name: str) -> str:
    """A member's name as a JSON pointer, which begins with a slash."""
    return name if name.startswith("/") else "/" + name.replace("~", "~0").replace("/", "~1")


def _pointed(text: str, pointers: list[str]) -> _Line:
    whole = _decode_any(text)
    record_id, features, label, *tenants = (resolve(whole, pointer, UNSET) for pointer in pointers)
    for pointer, found in zip(pointers[1:3], (features, label), strict=True):
        if found is UNSET:
            raise msgspec.ValidationError(f"nothing at {pointer}")
    record_id, tenant = (None if found is UNSET else found for found in (record_id, *(tenants or [UNSET])))
    return _Line(Raw(msgspec.json.encode(features)), label, record_id, tenant)


class _Twice(Exception):
    """A name that an object has twice: which of its values is meant is not known."""


def _refuse_twice(text: str, features: Raw) -> None:
    """Raises _Twice. Where there are as many colons as names, none came twice, and none is in a text."""
    names = 0
    if bytes(features).startswith(b"{"):
        names += len(_decode_members(features))
    names += len(_decode_members(text))
    if text.count(":") != names:
        json.loads(text, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, Any]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            raise _Twice(json.dumps(name, ensure_ascii=False))
        names.add(name)
