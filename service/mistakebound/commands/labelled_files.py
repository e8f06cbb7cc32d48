"""Labelled data from a file (CSV with a header, svmlight, JSON Lines, or a recording), as rows of a replay."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import Form
from mistakebound.core.replay.applied import AppliedRows
from mistakebound.core.replay.plan import carry_out, planned
from mistakebound.core.replay.recorded import Recorded
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.replay import Row
from mistakebound.settings import FeatureSettings, LearnerSettings, Settings


def _wrong_line(line: int, what: str, remedy: str) -> CommandError:
    return CommandError(f"line {line}: {what}; {remedy}")


def _parse_scalar(text: str) -> Any:
    """The number or truth value where the text is JSON for one, else the text."""
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
        raise _wrong_line(1, f"the header has no column `label`: {list(names)}", "rename the label's column")
    for number, cells in enumerate(reader, 1):
        if None in cells or None in cells.values():
            what = f"it does not have {len(names)} cells, as the header has"
            raise _wrong_line(reader.line_num, what, "correct the line")
        features = {name: _parse_cell(text) for name, text in cells.items() if name not in ("id", "label")}
        yield Row(cells.get("id") or str(number), features, _parse_scalar(cells["label"]))


def _parse_cell(text: str) -> Any:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def from_svmlight(lines: Iterable[str]) -> Iterator[Row]:
    """`label index:value ... # comment`; an index is a feature's name, and the line's number is the id."""
    for number, line in enumerate(lines, 1):
        label, *pairs = line.partition("#")[0].split() or ("",)
        if not label:
            continue
        features: dict[str, float] = {}
        for pair in pairs:
            name, _, text = pair.partition(":")
            if name == "qid":
                continue
            try:
                features[name] = float(text)
            except ValueError:
                raise _wrong_line(number, f"{pair!r} is not index:value", "correct the line") from None
        yield Row(str(number), features, _parse_scalar(label.removeprefix("+")))


class _JsonRow(msgspec.Struct, gc=False):
    """A line of JSON Lines. Features are kept as JSON text: the worker's step reads them."""

    features: Raw
    label: Any
    id: Any = UNSET


_decode_line = msgspec.json.Decoder(_JsonRow).decode


def from_jsonl(lines: Iterable[str | bytes]) -> Iterator[Row]:
    """`{"id": ..., "features": ..., "label": ...}` on each line; the default id is the line's number."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = _decode_line(line)
        except msgspec.ValidationError as error:
            what = f"it is not an object with features and label: {error}"
            raise _wrong_line(number, what, "add what is missing") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise _wrong_line(number, f"it is not JSON: {error}", "write one JSON object a line") from None
        yield Row(str(number if value.id is UNSET else value.id), value.features, value.label)


def read_labelled(form: Form, content: bytes) -> list[Row]:
    """Labelled data's rows. Raises CommandError, naming the line or the byte."""
    reader = {"csv": from_csv, "svmlight": from_svmlight, "jsonl": from_jsonl}[form]
    try:
        lines = io.StringIO(content.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        raise CommandError(f"the file is not UTF-8 at byte {error.start}") from None
    return list(reader(lines))


def read_rows(form: Form, content: bytes, settings: Settings) -> Sequence[Row]:
    """Labelled data's rows, or the examples of a recording in the order in which their labels were applied."""
    if form != "recording":
        return read_labelled(form, content)
    header, records = begin(content.splitlines(keepends=True))
    recorded, rows = Recorded(records, header.partitions), AppliedRows()
    # Which labels are applied depends on neither; afresh, a perceptron stands in for the learner.
    plan = planned(
        recorded, settings.model_copy(update={"learner": LearnerSettings(), "features": FeatureSettings()})
    )
    if plan.afresh is not None:
        plain = settings.model_copy(update={"learner": LearnerSettings(kind="perceptron")})
        plan = replace(plan, settings=plain)
    carry_out(recorded, plan, taken=rows.see)
    return rows.rows
