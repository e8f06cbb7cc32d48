"""Recordings: records as JSON Lines, with kcat's field names, and back.

1. `encode` is a function of the record alone: equal records give equal bytes, on any machine, at any time.
2. `decode` returns what was encoded, byte for byte; it refuses what it does not understand, and names line and field.
3. Lines are in record-time order (see `ORDER`), and within a partition always in offset order.

A line: `{"topic":"examples","partition":0,"offset":7,"ts":1700000000000,"headers":[["name","text"]],
"key":"tx-1","payload":"{...}"}`. `topic` is the logical name. Bytes that are not UTF-8 are written in base64,
marked by `"key_encoding":"base64"`, `"payload_encoding":"base64"` or a third item `"base64"` in a header.
"""

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from mistakebound.core.records import TOPICS, Headers, Record, Topic

FORMAT = 1
ORDER = "record time never going back within a partition, then topic, partition, offset"

_BASE64 = "base64"
_MAX_PARTITIONS = 1_000_000


class RecordingError(ValueError):
    """A line is not what a recording has there. The text names line, field and remedy."""

    def __init__(self, line: int, wrong: str, remedy: str) -> None:
        super().__init__(f"recording, line {line}: {wrong}. {remedy}")
        self.line = line


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a recording."""

    format: int = msgspec.field(name="mistakebound-recording")
    partitions: int
    order: str = ORDER


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    topic: Topic
    partition: int
    offset: int
    ts: int
    headers: list[list[str | None]]
    key: str | None
    payload: str | None
    key_encoding: Literal["base64"] | None = None
    payload_encoding: Literal["base64"] | None = None


_encoder = msgspec.json.Encoder()
_line_decoder = msgspec.json.Decoder(Line, strict=True)
_header_decoder = msgspec.json.Decoder(Header, strict=True)


def encode_header(partitions: int) -> bytes:
    """The first line, with its line end."""
    return _encoder.encode(Header(FORMAT, partitions)) + b"\n"


def encode(record: Record) -> bytes:
    """The record as one line, with its line end."""
    key, key_encoding = _text(record.key)
    payload, payload_encoding = _text(record.value)
    headers: list[list[str | None]] = []
    for name, value in record.headers:
        text, encoding = _text(value)
        headers.append([name, text] if encoding is None else [name, text, encoding])
    place = record.topic, record.partition, record.offset, record.timestamp_ms
    return _encoder.encode(Line(*place, headers, key, payload, key_encoding, payload_encoding)) + b"\n"


def decode(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a whole recording, lazily. Raises RecordingError at the first wrong line."""
    return begin(lines)[1]


def begin(lines: Iterable[bytes]) -> tuple[Header, Iterator[Record]]:
    """The header at once, and the records lazily. Raises RecordingError for another format or no header at all."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        raise RecordingError(1, "the file is empty", "`mistakebound record` writes at least a header")
    remedy = (
        'A recording starts with {"mistakebound-recording": 1, "partitions": P}; see `mistakebound record`'
    )
    try:
        header = _header_decoder.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(1, f"no recording header: {error}", remedy) from None
    if header.format != FORMAT:
        wrong = f"format {header.format} is unknown"
        raise RecordingError(
            1, wrong, f"This version reads format {FORMAT}; read the file with the version that wrote it"
        )
    if not 1 <= header.partitions <= _MAX_PARTITIONS:
        raise RecordingError(1, f"partitions = {header.partitions} is not a partition count", remedy)
    return header, _records(header, rest)


def _records(header: Header, lines: Iterator[bytes]) -> Iterator[Record]:
    newest: dict[tuple[Topic, int], int] = {}
    for number, line in enumerate(lines, start=2):
        record = _decode(number, line)
        if not 0 <= record.partition < header.partitions:
            wrong = f"partition = {record.partition}, but the header says {header.partitions} partitions"
            raise RecordingError(number, wrong, f"A partition lies between 0 and {header.partitions - 1}")
        before = newest.get((record.topic, record.partition), -1)
        if record.offset <= before:
            wrong = f"offset = {record.offset} of {record.topic}-{record.partition} comes after {before}"
            remedy = "Offsets start at 0 and grow within a partition; was the file sorted or joined?"
            raise RecordingError(number, wrong, remedy)
        newest[record.topic, record.partition] = record.offset
        yield record


def _decode(number: int, raw: bytes) -> Record:
    try:
        line = _line_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        remedy = f"A line is a record as `mistakebound record` writes it; topics are {', '.join(TOPICS)}"
        raise RecordingError(number, str(error), remedy) from None
    return Record(
        line.topic,
        line.partition,
        line.offset,
        line.ts,
        _bytes(number, "key", line.key, line.key_encoding),
        _bytes(number, "payload", line.payload, line.payload_encoding),
        _headers(number, line.headers),
    )


def _headers(number: int, pairs: list[list[str | None]]) -> Headers:
    headers: list[tuple[str, bytes | None]] = []
    for place, pair in enumerate(pairs):
        match pair:
            case [str() as name, value]:
                headers.append((name, _bytes(number, f"headers[{place}]", value, None)))
            case [str() as name, str() as value, "base64"]:
                headers.append((name, _bytes(number, f"headers[{place}]", value, _BASE64)))
            case _:
                shape = '["name", "text"], ["name", null] or ["name", "...", "base64"]'
                raise RecordingError(number, f"headers[{place}] = {_brief(pair)}", f"Write {shape}")
    return tuple(headers)


def _text(data: bytes | None) -> tuple[str | None, Literal["base64"] | None]:
    if data is None:
        return None, None
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), "base64"


def _bytes(number: int, field: str, text: str | None, encoding: str | None) -> bytes | None:
    if text is None:
        if encoding is not None:
            raise RecordingError(number, f"{field} is null but marked base64", "Remove the mark")
        return None
    try:
        return text.encode("utf-8") if encoding is None else base64.b64decode(text, validate=True)
    except UnicodeEncodeError:
        raise RecordingError(number, f"{field} holds half a surrogate pair", "Write it in base64") from None
    except ValueError:
        wrong = f"{field} is not base64: {_brief(text)}"
        raise RecordingError(number, wrong, "Remove the mark or encode it") from None


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
