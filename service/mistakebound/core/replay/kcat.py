"""What `kcat -J` prints: records as JSON Lines without a header line, under the names that topics have on the broker.

kcat writes a payload that is not UTF-8 into its JSON byte by byte: such a line is no JSON, but its bytes are all there,
and come back as they were. Headers are one list, names and values in turn. A time that kcat does not know is left out.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mistakebound.core.records import Headers, Record, Topic
from mistakebound.core.replay.recording import FORMAT, Header, RecordingError

_BEGINNING = re.compile(rb'\s*\{\s*"topic"\s*:\s*"[^"]*"\s*,\s*"partition"\s*:')
_NO_TIME = -1
_NULL = Raw(b"null")
_REMEDY = "A line is a record as `kcat -C -J` prints it, one a line"


class _Line(msgspec.Struct, gc=False):
    """What kcat knows of a record. Older versions knew neither time nor broker."""

    topic: str
    partition: int
    offset: int
    payload: Raw
    key: Raw = _NULL
    ts: int = _NO_TIME
    headers: list[str | None] | None = None
    key_error: str | None = None
    payload_error: str | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_text = msgspec.json.Decoder(str).decode


def is_kcat(beginning: bytes) -> bool:
    """Whether a file with this beginning was printed by `kcat -J`."""
    return _BEGINNING.match(beginning) is not None


def begin(
    lines: Callable[[], Iterable[bytes]], topics: Mapping[str, Topic], partitions: int = 1
) -> tuple[Header, Iterator[Record]]:
    """A recording's header and its records, lazily; `topics` gives the logical topic of a name on the broker.

    `lines` is called twice: kcat does not say how many partitions there are. There are as many as the records
    need, and at least `partitions`. Raises RecordingError at the first wrong line.
    """
    most = max((record.partition for record in _records(lines(), topics)), default=0) + 1
    return Header(FORMAT, max(partitions, most)), _records(lines(), topics)


def _records(lines: Iterable[bytes], topics: Mapping[str, Topic]) -> Iterator[Record]:
    newest: dict[tuple[Topic, int], int] = {}
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        record = _decode(number, raw, topics)
        place = (record.topic, record.partition)
        if record.offset <= newest.get(place, -1):
            wrong = (
                f"offset = {record.offset} of {record.topic}-{record.partition} comes after {newest[place]}"
            )
            remedy = (
                "Offsets grow within a partition; was the file sorted or joined, or is a part in it twice?"
            )
            raise RecordingError(number, wrong, remedy)
        newest[place] = record.offset
        yield record


def _decode(number: int, raw: bytes, topics: Mapping[str, Topic]) -> Record:
    try:
        line = _decode_line(raw)
        key, value = _bytes(line.key), _bytes(line.payload)
        headers = _headers(number, line.headers or [], "strict")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        line, key, value = _decode_byte_by_byte(number, raw, error)
        headers = _headers(number, line.headers or [], "surrogateescape")
    for name, failed in (("key", line.key_error), ("payload", line.payload_error)):
        if failed is not None:
            wrong = f"kcat could not decode the {name} ({failed}), and left it out"
            raise RecordingError(number, wrong, "Print the records without kcat's option -s")
    if line.topic not in topics:
        known = ", ".join(topics)
        remedy = f"The settings know {known}; set topics.examples, topics.labels or log.prefix, or leave the lines out"
        raise RecordingError(number, f"topic = {line.topic!r} is none of the settings' topics", remedy)
    if line.partition < 0 or line.offset < 0:
        wrong = f"partition = {line.partition}, offset = {line.offset}"
        raise RecordingError(number, wrong, "Neither is ever negative")
    return Record(topics[line.topic], line.partition, line.offset, line.ts, key, value, headers)


def _bytes(found: Raw) -> bytes | None:
    """A text's bytes; JSON that is no text (Avro, or what jq made of the text) is the value itself."""
    raw = bytes(found)
    if raw == b"null":
        return None
    return _decode_text(raw).encode() if raw.startswith(b'"') else raw


def _decode_byte_by_byte(
    number: int, raw: bytes, error: Exception
) -> tuple[_Line, bytes | None, bytes | None]:
    """A line whose texts are not all UTF-8. Raises RecordingError for one that is wrong in another way, too."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        pass
    else:
        raise RecordingError(number, str(error), _REMEDY) from None
    try:
        found: dict[str, Any] = json.loads(raw.decode("utf-8", "surrogateescape"))
        key, value = (_escaped(found.pop(name, None)) for name in ("key", "payload"))
        return msgspec.convert({**found, "payload": _NULL}, _Line), key, value
    except (ValueError, RecursionError, AttributeError) as wrong:
        raise RecordingError(number, str(wrong), _REMEDY) from None


def _escaped(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _headers(number: int, flat: list[str | None], errors: str) -> Headers:
    names, values = flat[0::2], flat[1::2]
    if len(names) != len(values) or None in names:
        raise RecordingError(number, f"headers = {flat!r:.60}", "Write names and values in turn, in one list")
    return tuple(
        (str(name), None if value is None else value.encode("utf-8", errors))
        for name, value in zip(names, values, strict=True)
    )
