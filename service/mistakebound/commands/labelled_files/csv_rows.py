"""CSV with a header (RFC 4180, with any delimiter): a row of the file is a row of the replay.

A number is a number, other text a category (`name=text`), an empty cell is missing. What is ambiguous is refused.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import LINE_BYTES
from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.labels_seen import LabelsSeen
from mistakebound.commands.labelled_files.numbers import NotFinite, read_number
from mistakebound.commands.labelled_files.text_lines import TextLines, wrong_line
from mistakebound.core.messages.labels import TextLabels
from mistakebound.core.replay.replay import Row

_DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*")


@dataclass(frozen=True, slots=True)
class _Places:
    """Where in a row everything is."""

    cells: int
    label: int
    id: int | None
    features: tuple[tuple[str, int], ...]
    tenant: int | None = None


class CsvRows:
    """Reads rows, from the header on or from any row once the header is known."""

    def __init__(self, columns: Columns, delimiter: str, labels: TextLabels, seen: LabelsSeen) -> None:
        self._columns, self._delimiter, self._labels, self._seen = columns, delimiter, labels, seen
        self._places: _Places | None = None
        csv.field_size_limit(LINE_BYTES)

    def rows(self, lines: TextLines) -> Iterator[Row]:
        """All rows of a file. Raises CommandError."""
        reader = self._reader(lines)
        header = next((cells for _, cells in _numbered(reader, lines) if cells), None)
        if header is None:
            raise wrong_line(1, "the file is empty", "write a header with the columns' names first")
        self._places = _places(header, self._columns, self._delimiter, lines.number)
        for place, (line, cells) in enumerate(filled for filled in _numbered(reader, lines) if filled[1]):
            yield self._row(line, cells, place, self._places)

    def row_at(self, lines: TextLines, place: int) -> Row:
        """The row that begins with the next line; `rows` has read the file before."""
        assert self._places is not None
        line, cells = next(filled for filled in _numbered(self._reader(lines), lines) if filled[1])
        return self._row(line, cells, place, self._places)

    def _reader(self, lines: TextLines) -> "Iterator[list[str]]":
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    def _row(self, line: int, cells: list[str], place: int, places: _Places) -> Row:
        if len(cells) != places.cells:
            what = f"it has {len(cells)} cells, the header {places.cells}"
            raise wrong_line(line, what, "correct the line; a cell with a delimiter in it is put in quotes")
        features = {name: self._cell(name, cells[at], line) for name, at in places.features}
        record_id = str(place + 1) if places.id is None else cells[places.id]
        if not record_id:
            remedy = "fill it, or leave the column out with --ignore, so that rows are numbered"
            raise wrong_line(line, "the id is empty", remedy)
        label = cells[places.label]
        self._seen.see(label, line)
        tenant = None if places.tenant is None else cells[places.tenant]
        return Row(record_id, features, self._labels.read(label), line, tenant)

    def _cell(self, name: str, text: str, line: int) -> Any:
        if not text:
            return None
        try:
            number = read_number(text)
        except NotFinite:
            remedy = "leave the cell empty where the value is missing"
            raise wrong_line(
                line, f"`{name}` is {text!r}, which is no number and no category", remedy
            ) from None
        if number is not None:
            return number
        if self._delimiter != "," and _DECIMAL_COMMA.fullmatch(text):
            remedy = "write it with a point; a category of that name can be given in JSON Lines"
            raise wrong_line(line, f"`{name}` is {text!r}: a number with a decimal comma?", remedy)
        return text


def _numbered(reader: "Iterator[list[str]]", lines: TextLines) -> Iterator[tuple[int, list[str]]]:
    """Rows (a blank line is an empty one) with the line on which each begins."""
    while True:
        line = lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = (
                "correct the quotes: a quote inside a quoted cell is written twice, and the last one ends it"
            )
            raise wrong_line(line, f"it is not CSV: {error}", remedy) from None
        yield line, cells


def _places(header: list[str], columns: Columns, delimiter: str, line: int) -> _Places:
    """Which cell is what. Raises CommandError where the header does not say so, or says it twice."""
    label = "label" if columns.label is None else columns.label
    if label not in header:
        raise _no_label(header, label, delimiter, line)
    named = {
        "--tenant": (columns.tenant,),
        "--id": (columns.id,),
        "--features": columns.features,
        "--ignore": columns.ignored,
    }
    for option, names in named.items():
        if missing := [name for name in names if name is not None and name not in header]:
            raise wrong_line(
                line, f"the header has no column `{missing[0]}`: {_shown(header)}", f"correct {option}"
            )
    record_id, taken = columns.id, (label, columns.tenant, *columns.ignored)
    if record_id is None and "id" in header and "id" not in (*taken, *columns.features):
        record_id = "id"
    features = columns.features or tuple(name for name in header if name not in (record_id, *taken))
    used = (label, *(name for name in (record_id, columns.tenant) if name is not None), *features)
    for name in used:
        if header.count(name) > 1 and name:
            which = " and ".join(str(at) for at, other in enumerate(header, 1) if other == name)
            remedy = "rename one, or leave both out with --ignore"
            raise wrong_line(line, f"the header names `{name}` twice, in columns {which}", remedy)
    if "" in features or (header.count("") > 1 and "" in used):
        remedy = "name it; or --ignore '' leaves it out (a data frame's index, perhaps), --id '' takes it as the id"
        raise wrong_line(line, f"column {header.index('') + 1} has no name", remedy)
    _once(used, columns)
    at = {name: place for place, name in enumerate(header)}
    return _Places(
        len(header),
        at[label],
        None if record_id is None else at[record_id],
        tuple((name, at[name]) for name in features),
        None if columns.tenant is None else at[columns.tenant],
    )


def _once(used: tuple[str, ...], columns: Columns) -> None:
    """Each column is one thing."""
    wrong = [name for name in used if used.count(name) > 1 or name in columns.ignored]
    if wrong:
        raise CommandError(
            f"the column `{wrong[0]}` is asked for as two things; name it once, in --label, --id, --features or --ignore"
        )


def _no_label(header: list[str], label: str, delimiter: str, line: int) -> CommandError:
    whole = delimiter.join(header)
    for other, shown in _DELIMITERS.items():
        names = [name.strip('" ') for name in whole.split(other)]
        if other != delimiter and (label in names or (len(header) == 1 < len(names))):
            what = f"the header looks as if its delimiter were {shown}: {whole[:80]!r}"
            return wrong_line(line, what, f"add --delimiter {shown}")
    what = f"the header has no column `{label}`: {_shown(header)}"
    return wrong_line(line, what, "rename the label's column, or name it with --label")


def _shown(header: list[str]) -> str:
    return f"{header[:20]}{' ...' if len(header) > 20 else ''}"
