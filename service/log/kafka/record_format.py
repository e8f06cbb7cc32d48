"""Records as bytes of a batch, and back: Kafka's record format 2, without the batch's own header.

Format: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Iterator
from typing import Any

from kafka.errors import CorruptRecordError
from kafka.record.util import decode_varint, encode_varint

from service.core.records import Headers, Outgoing, Record, Topic


def _spell(number: int) -> bytes:
    spelled = bytearray()
    encode_varint(number, spelled.append)
    return bytes(spelled)


_SMALL = tuple(_spell(number) for number in range(8_192))
_NULL = _spell(-1)


def _varint(number: int) -> bytes:
    return _SMALL[number] if 0 <= number < len(_SMALL) else _spell(number)


def encoded(place: int, delay_ms: int, record: Outgoing) -> bytes:
    """One record as it stands in a batch, at this place and so long after the first one."""
    key, value, headers = record.key, record.value, record.headers
    front = b"\0" + _varint(delay_ms) + _varint(place) + _text(key)
    size = _NULL if value is None else _varint(len(value))
    back = _varint(len(headers))
    for name, content in headers:
        back += _text(name.encode()) + _text(content)
    whole = len(front) + len(size) + len(value or b"") + len(back)
    return b"".join((_varint(whole), front, size, value or b"", back))


def _text(content: bytes | None) -> bytes:
    return _NULL if content is None else _varint(len(content)) + content


def decoded(topic: Topic, partition: int, batch: Any) -> Iterator[Record]:
    iter(batch)  # decompresses
    buffer, at = bytes(batch._buffer), batch._pos
    base, first = batch.base_offset, batch.first_timestamp
    appended = batch.max_timestamp if batch.timestamp_type else None
    headers: Headers
    try:
        for _ in range(batch.records_count):
            size, at = decode_varint(buffer, at)
            end = at + size
            delay, at = decode_varint(buffer, at + 1)  # behind the attributes, of which there are none yet
            place, at = decode_varint(buffer, at)
            size, at = decode_varint(buffer, at)
            key = None if size < 0 else buffer[at : (at := at + size)]
            size, at = decode_varint(buffer, at)
            value = None if size < 0 else buffer[at : (at := at + size)]
            count, at = decode_varint(buffer, at)
            headers = ()
            for _ in range(count):
                size, at = decode_varint(buffer, at)
                name = buffer[at : (at := at + size)].decode()
                size, at = decode_varint(buffer, at)
                headers += ((name, None if size < 0 else buffer[at : (at := at + size)]),)
            if at != end:
                raise CorruptRecordError(
                    f"the record at offset {base + place} is of another size than it says"
                )
            yield Record(
                topic,
                partition,
                base + place,
                first + delay if appended is None else appended,
                key,
                value,
                headers,
            )
    except (IndexError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        raise CorruptRecordError(f"the batch at offset {base} cannot be read: {error!r}") from error
