"""svmlight, or libsvm: `label index:value ... # comment` on each line. An index is a feature's name."""

from collections.abc import Iterator
from typing import Any

from mistakebound.commands.labelled_files.labels_seen import LabelsSeen
from mistakebound.commands.labelled_files.numbers import NotFinite, read_number
from mistakebound.commands.labelled_files.text_lines import TextLines, wrong_line
from mistakebound.core.messages.labels import TextLabels, as_number
from mistakebound.core.replay.replay import Row


class SvmlightRows:
    """Reads rows; the line's number is the id."""

    def __init__(self, labels: TextLabels, seen: LabelsSeen) -> None:
        self._labels, self._seen = labels, seen

    def rows(self, lines: TextLines) -> Iterator[Row]:
        """All rows from here on. Raises CommandError."""
        while True:
            number = lines.begin_row()
            text = next(lines, None)
            if text is None:
                return
            label, *pairs = text.partition("#")[0].split() or ("",)
            if label:
                yield self._row(number, label, pairs)

    def row_at(self, lines: TextLines, place: int) -> Row:  # noqa: ARG002 - a row's line is its number
        """The row on the next line."""
        return next(self.rows(lines))

    def _row(self, number: int, label: str, pairs: list[str]) -> Row:
        if ":" in label:
            raise wrong_line(number, f"it begins with {label!r}", "write the label first")
        if label.startswith("+") and as_number(label) is not None:
            label = label[1:]  # the format's own spelling of a positive number
        features: dict[str, Any] = {}
        for pair in pairs:
            name, _, text = pair.partition(":")
            if name == "qid":
                continue
            value = _value(text)
            if value is None or not name:
                raise wrong_line(number, f"{pair!r} is not index:value", "correct the line")
            if name in features:
                raise wrong_line(number, f"index {name} comes twice", "leave one out, or add the values up")
            if name[:1] in "0123456789+-" and not _plain(name):
                raise wrong_line(
                    number, f"{name!r} is no index", "write it in digits, without zeros before them"
                )
            features[name] = value
        self._seen.see(label, number)
        return Row(str(number), features, self._labels.read(label), number)


def _value(text: str) -> Any:
    try:
        return read_number(text)
    except NotFinite:
        return None


def _plain(index: str) -> bool:
    return index.isascii() and index.isdigit() and (index == "0" or not index.startswith("0"))
