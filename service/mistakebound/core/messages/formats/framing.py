"""Which schema a record was written by: Confluent's framing in the value, or the id in a header.

In the value: a zero byte, the id as 4 bytes, highest first; then, of Protobuf, which of the file's messages it is; then
the message. In the header `__value_schema_id`: the byte 1 and the schema's GUID (or the byte 0 and the id), of Protobuf
with the message's place behind it; the value is then the message alone. The header counts where there is one.

A place is a list of indexes, outermost message first, as zigzag varints with their number before them; a single zero
byte is the first message.
"""

from typing import NamedTuple
from uuid import UUID

from mistakebound.core.faults import BadRecord
from mistakebound.core.records import Record

HEADER = "__value_schema_id"
PREFIX_BYTES = 5
GUID_BYTES = 17
MOST_INDEXES = 100
"""Protobuf's own limit of nesting."""
FIRST = (0,)

_NOT_FRAMED = (
    "the value does not begin with a zero byte and a schema's id, and no header names a schema; have the producer use "
    "the registry's serializer, or set messages.format to what it writes"
)


class Framed(NamedTuple):
    """A message, the id of its schema, and where in a Protobuf file its type is."""

    schema: str
    body: bytes
    indexes: tuple[int, ...] = FIRST


def schema_id_of(record: Record) -> str | None:
    """The id of the schema that a record names; None where it names none."""
    named = _header(record) if record.headers else None
    value = record.value
    if named is not None:
        return _named(named)[0] if value is not None else None
    if value is None or len(value) < PREFIX_BYTES or value[0] != 0:
        return None
    return str(int.from_bytes(value[1:PREFIX_BYTES]))


def unframe(record: Record, value: bytes, *, protobuf: bool) -> Framed:
    """Take a record apart. Raises BadRecord."""
    named = _header(record) if record.headers else None
    if named is not None:
        schema, rest = _named(named)
        if schema is None:
            raise BadRecord("not-framed", f"the header {HEADER} holds no schema's id: {named[:20]!r}")
        if not protobuf:
            return Framed(schema, value)
        return Framed(schema, value, _indexes(rest, 0)[0])
    schema = schema_id_of(record)
    if schema is None:
        raise BadRecord("not-framed", _NOT_FRAMED)
    if not protobuf:
        return Framed(schema, value[PREFIX_BYTES:])
    indexes, start = _indexes(value, PREFIX_BYTES)
    return Framed(schema, value[start:], indexes)


def _header(record: Record) -> bytes | None:
    return next((value for name, value in record.headers if name == HEADER and value is not None), None)


def _named(header: bytes) -> tuple[str | None, bytes]:
    """(the id, what follows it)."""
    if len(header) >= GUID_BYTES and header[0] == 1:
        return str(UUID(bytes=header[1:GUID_BYTES])), header[GUID_BYTES:]
    if len(header) >= PREFIX_BYTES and header[0] == 0:
        return str(int.from_bytes(header[1:PREFIX_BYTES])), header[PREFIX_BYTES:]
    return None, b""


def _indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """(the indexes that begin at this byte, where the rest begins). Raises BadRecord."""
    count, at = _zigzag(data, at)
    if count == 0:
        return FIRST, at
    if not 0 < count <= MOST_INDEXES:
        raise BadRecord("schema-mismatch", f"the message's place in its file has {count} indexes")
    found = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        if index < 0:
            raise BadRecord("schema-mismatch", f"the message's place in its file has the index {index}")
        found.append(index)
    return tuple(found), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """(a zigzag varint of at most 5 bytes, where the rest begins)."""
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise BadRecord("schema-mismatch", "the message's place in its Protobuf file cannot be read")
