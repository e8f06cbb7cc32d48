"""Published predictions that a label judged, in order: read off `outcomes`, or kept in a file of their own."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from mistakebound.core.messages.schema import Decision, read_outcomes
from mistakebound.core.records import Record
from mistakebound.settings import LabelValue

FORMAT = 1
_APPLIED = ("applied", "applied_late")


class JudgedError(ValueError):
    """A line is not what a file of judged predictions has there. The text names line, field and remedy."""

    def __init__(self, line: int, wrong: str) -> None:
        super().__init__(
            f"judged predictions, line {line}: {wrong}. `mistakebound replay FILE --judged FILE` writes such a file"
        )


class Judged(NamedTuple):
    """One published prediction and its label."""

    at: int
    """Stream time in ms at the end of the partition step that applied the label."""
    id: str
    label: LabelValue
    prediction: LabelValue | None
    """None where no class was known."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a file: the settings that an epoch fixes."""

    format: int = msgspec.field(name="mistakebound-judged")
    settings: dict[str, Any]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: int
    id: str
    label: LabelValue
    prediction: LabelValue | None


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(Header, strict=True)
_line_decoder = msgspec.json.Decoder(_Line, strict=True)


def judged_decisions(decisions: Iterable[Decision], at: int) -> Iterator[Judged]:
    """Those of a partition step that applied a label."""
    for decision in decisions:
        if decision.outcome in _APPLIED and decision.id is not None and decision.label is not None:
            yield Judged(at, decision.id, decision.label, decision.prediction)


def judged_outcomes(records: Iterable[Record]) -> Iterator[Judged]:
    """All that a partition of `outcomes` has judged, in order; a step that is not whole counts for nothing. Raises BadLog."""
    parts: list[Decision] = []
    for record in records:
        message = read_outcomes(record)
        parts = message.decisions if message.part == 0 else [*parts, *message.decisions]
        if message.at is not None:
            yield from judged_decisions(parts, message.at)
            parts = []


def encode_header(settings: dict[str, Any]) -> bytes:
    """The first line, with its line end."""
    return _encoder.encode(Header(FORMAT, settings)) + b"\n"


def encode(one: Judged) -> bytes:
    """A judged prediction as one line, with its line end."""
    return _encoder.encode(_Line(*one)) + b"\n"


def is_judged(beginning: bytes) -> bool:
    """Whether a file with this beginning holds judged predictions."""
    return b'"mistakebound-judged"' in beginning[:200]


def begin(lines: Iterable[bytes]) -> tuple[Header, Iterator[Judged]]:
    """The header at once, and the rest lazily. Raises JudgedError."""
    rest = iter(lines)
    try:
        header = _header_decoder.decode(next(rest, b""))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JudgedError(1, f"no header: {error}") from None
    if header.format != FORMAT:
        raise JudgedError(1, f"format {header.format} is unknown; this version reads {FORMAT}")
    return header, _read(rest)


def _read(lines: Iterator[bytes]) -> Iterator[Judged]:
    for number, raw in enumerate(lines, start=2):
        try:
            line = _line_decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JudgedError(number, str(error)) from None
        yield Judged(line.at, line.id, line.label, line.prediction)
