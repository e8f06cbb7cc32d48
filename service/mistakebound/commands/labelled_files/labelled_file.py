"""Labelled data in a file (CSV with a header, svmlight, JSON Lines), as rows of a replay that are never all in memory."""

from array import array
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from mistakebound.commands.input_files import Form, InputFile
from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.csv_rows import CsvRows
from mistakebound.commands.labelled_files.jsonl_rows import JsonRows
from mistakebound.commands.labelled_files.labels_seen import LabelsSeen
from mistakebound.commands.labelled_files.svmlight_rows import SvmlightRows
from mistakebound.commands.labelled_files.text_lines import TextLines
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.inputs import InputReader, declared
from mistakebound.core.messages.labels import TextLabels
from mistakebound.core.messages.schema import encode
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import Row
from mistakebound.settings import LabelSettings, MessageSettings


class _Rows(Protocol):
    """How a format is read."""

    def rows(self, lines: TextLines) -> Iterator[Row]: ...

    def row_at(self, lines: TextLines, place: int) -> Row: ...


class LabelledFile:
    """The rows of a file, read anew each time. One by one in any order costs 16 bytes of memory a row.

    Raises CommandError, naming the line, where the file is not what its form says.
    """

    def __init__(
        self, file: InputFile, form: Form, labels: LabelSettings, columns: Columns | None = None
    ) -> None:
        self._file = file
        self._places: tuple[array[int], array[int]] | None = None
        self._labels_seen, self._format = _format(file, form, labels, columns or Columns())

    def __iter__(self) -> Iterator[Row]:
        return self._format.rows(TextLines(self._file.lines()))

    def __len__(self) -> int:
        return len(self._found()[0])

    def __getitem__(self, place: int, /) -> Row:
        offsets, numbers = self._found()
        offset, number = offsets[place], numbers[place]
        return self._format.row_at(TextLines(self._file.lines(offset), number - 1, offset), place)

    def _found(self) -> tuple["array[int]", "array[int]"]:
        """Where each row begins: byte and line."""
        if self._places is None:
            offsets, numbers = array("q"), array("q")
            lines = TextLines(self._file.lines())
            for row in self._format.rows(lines):
                assert row.line is not None
                offsets.append(lines.row_offset)
                numbers.append(row.line)
            self._places = offsets, numbers
        return self._places

    def advice(self) -> str | None:
        """Which settings to write for labels that the settings do not declare, of the rows read so far."""
        return self._labels_seen.advice()


def _format(file: InputFile, form: Form, labels: LabelSettings, columns: Columns) -> tuple[LabelsSeen, _Rows]:
    columns.must_fit(form)
    classes = declared(labels)
    shown = ", ".join(encode(one).decode() for one in classes)[:200] or "any text"
    if form == "jsonl":
        seen = LabelsSeen(shown, _on_the_stream(labels), typed=True)
        return seen, JsonRows(columns, seen)
    text_labels = TextLabels(classes)
    seen = LabelsSeen(shown, text_labels.means_a_class, typed=False)
    if form == "svmlight":
        return seen, SvmlightRows(text_labels, seen)
    delimiter = columns.delimiter or ("\t" if file.name.lower().endswith(".tsv") else ",")
    return seen, CsvRows(columns, delimiter, text_labels, seen)


def _on_the_stream(labels: LabelSettings) -> Callable[[Any], bool]:
    """Whether the stream's reader takes a label."""
    reader = InputReader(MessageSettings(), labels)

    def is_class(label: Any) -> bool:
        try:
            reader.label(Record("labels", 0, 0, 0, None, encode({"id": "1", "label": label})))
        except BadRecord:
            return False
        return True

    return is_class
