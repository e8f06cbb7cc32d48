"""Labelled data from files: CSV with a header, svmlight, or JSON Lines, as rows of a replay."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.core.replay.replay import Row


def wrong(line: int, what: str, remedy: str) -> CommandError:
    """A line that cannot be read: it is the file's fault, and says where."""
    return CommandError(ExitCode.USAGE, f"line {line}: {what}; {remedy}")


def scalar(text: str) -> Any:
    """A JSON scalar where the text is one, else the text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float) else text


def from_csv(lines: Iterable[str]) -> Iterator[Row]:
    """A header with a column `label`; `id` is optional, every other column is a feature.

    A number is a number, other text is a category (`name=text`), an empty cell is missing.
    """
    reader = csv.DictReader(lines)
    names = reader.fieldnames or ()
    if "label" not in names:
        raise wrong(1, f"the header has no column `label`: {list(names)}", "rename the label's column")
    for number, cells in enumerate(reader, 1):
        if None in cells or None in cells.values():
            raise wrong(reader.line_num, f"it has not {len(names)} cells as the header", "mend the line")
        features = {name: _cell(text) for name, text in cells.items() if name not in ("id", "label")}
        yield Row(cells.get("id") or str(number), features, scalar(cells["label"]))


def _cell(text: str) -> Any:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def from_svmlight(lines: Iterable[str]) -> Iterator[Row]:
    """`label index:value ... # comment`; an index is a feature's name; the id is the line's number."""
    for number, line in enumerate(lines, 1):
        label, *pairs = line.partition("#")[0].split() or ("",)
        if not label:
            continue
        features: dict[str, float] = {}
        for pair in pairs:
            name, colon, text = pair.partition(":")
            if name == "qid":
                continue
            try:
                features[name] = float(text)
            except ValueError:
                colon = ""
            if not colon:
                raise wrong(number, f"{pair!r} is not index:value", "mend the line")
        yield Row(str(number), features, scalar(label.removeprefix("+")))


class _Line(msgspec.Struct, gc=False):
    """A line of JSON Lines. Features are kept as JSON text: the worker's step reads them."""

    features: Raw
    label: Any
    id: Any = UNSET


_line = msgspec.json.Decoder(_Line).decode


def from_jsonl(lines: Iterable[str | bytes]) -> Iterator[Row]:
    """`{"id": ..., "features": ..., "label": ...}` a line; the id is optional: the line's number."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = _line(line)
        except msgspec.ValidationError as error:
            what = f"it is no object with features and label: {error}"
            raise wrong(number, what, "add what is missing") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise wrong(number, f"it is no JSON: {error}", "write one JSON object a line") from None
        yield Row(str(number if value.id is UNSET else value.id), value.features, value.label)


READERS: Mapping[str, Callable[[Iterable[str]], Iterator[Row]]] = {
    "csv": from_csv,
    "svmlight": from_svmlight,
    "jsonl": from_jsonl,
}


def text_lines(content: bytes) -> Iterable[str]:
    """The lines of a UTF-8 file. Raises CommandError, naming the offending byte."""
    try:
        return io.StringIO(content.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        raise CommandError(ExitCode.USAGE, f"the file is not UTF-8 at byte {error.start}") from None
