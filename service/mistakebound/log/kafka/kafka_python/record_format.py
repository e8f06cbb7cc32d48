"""Records as bytes of a batch, and back: Kafka's record format 2, without the batch's own header.

Format: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Iterator
from typing import Any

from kafka.errors import CorruptRecordError, KafkaError
from kafka.record.util import encode_varint

from mistakebound.core.records import NAME_NOT_UTF8, Headers, Outgoing, Record, Topic


def _spell(number: int) -> bytes:
    spelled = bytearray()
    encode_varint(number, spelled.append)
    return bytes(spelled)


_SMALL = tuple(_spell(number) for number in range(8_192))
"""Spelled anew, the numbers of a record would take 0.9 us instead of 0.2 (compiled 1.0 instead of 0.1)."""
_NULL = _spell(-1)
_NO_HEADERS = _spell(0)
FAR = 2**60
"""Times and delays within it add up to what 64 bits hold; in ms, some 36 million years."""


def _varint(number: int) -> bytes:
    return _SMALL[number] if 0 <= number < len(_SMALL) else _spell(number)


def _in_64_bits(number: int) -> int:
    """As brokers and clients add and subtract: what does not fit wraps around."""
    return (number + 2**63) % 2**64 - 2**63


def encoded(index: int, delay_ms: int, record: Outgoing) -> bytes:
    """One record as it stands in a batch, at this index and `delay_ms` after the first one."""
    key, value, headers = record.key, record.value, record.headers
    if not -FAR < delay_ms < FAR:
        delay_ms = _in_64_bits(delay_ms)
    front = b"\0" + _varint(delay_ms) + _varint(index) + _text(key)
    size = _NULL if value is None else _varint(len(value))
    back = _NO_HEADERS
    if headers:
        texts = [_text(name.encode()) + _text(content) for name, content in headers]
        back = _varint(len(headers)) + b"".join(texts)
    rest = b"".join((front, size, value or b"", back))
    return _varint(len(rest)) + rest


def _text(content: bytes | None) -> bytes:
    return _NULL if content is None else _varint(len(content)) + content


def decoded(topic: Topic, partition: int, batch: Any) -> Iterator[Record]:
    """The records of one of the client's batches. Raises CorruptRecordError where its bytes are not records."""
    _decompress(batch)
    buffer, at = bytes(batch._buffer), int(batch._pos)
    base, first = int(batch.base_offset), int(batch.first_timestamp)
    far = not -FAR < first < FAR
    appended: int | None = batch.max_timestamp if batch.timestamp_type else None
    try:
        for _ in range(int(batch.records_count)):
            size, at = _number(buffer, at)
            end = at + size
            delay, at = _number(buffer, at + 1)  # after the attributes, which Kafka does not use yet
            index, at = _number(buffer, at)
            key, at = _content(buffer, at)
            value, at = _content(buffer, at)
            headers: Headers = ()
            if buffer[at]:
                headers, at = _headers(buffer, at)
            else:  # none
                at += 1
            if at != end:
                raise CorruptRecordError(
                    f"the record at offset {base + index} is of another size than it says"
                )
            stamp = first + delay if appended is None else appended
            if far or not -FAR < delay < FAR:
                stamp = _in_64_bits(stamp)
            yield Record(topic, partition, base + index, stamp, key, value, headers)
    except (IndexError, ValueError) as error:
        raise CorruptRecordError(f"the batch at offset {base} cannot be read: {error!r}") from error


def _decompress(batch: Any) -> None:
    try:
        iter(batch)  # which decompresses it, and yields nothing yet
    except (KafkaError, MemoryError):
        raise
    except Exception as error:  # each codec's library has errors of its own
        raise CorruptRecordError(
            f"the batch at offset {batch.base_offset} cannot be decompressed: {error!r}"
        ) from error


def _headers(buffer: bytes, at: int) -> tuple[Headers, int]:
    """The headers of a record, those without a readable name first, and where they end."""
    headers: list[tuple[str, bytes | None]] = []
    nameless: list[tuple[str, bytes | None]] = []
    count, at = _number(buffer, at)
    for _ in range(count):
        name, at = _content(buffer, at)
        content, at = _content(buffer, at)
        try:
            headers.append(((name or b"").decode(), content))
        except UnicodeDecodeError:
            nameless.append((NAME_NOT_UTF8, name))
    return (*nameless, *headers), at


def _number(buffer: bytes, at: int) -> tuple[int, int]:
    """A signed number of 64 bits, and where it ends. Raises IndexError, ValueError."""
    byte = buffer[at]
    at += 1
    if byte < 0x80:  # most are: lengths of keys, counts of headers
        return (byte >> 1) ^ -(byte & 1), at
    second = buffer[at]
    if second < 0x80:  # nearly all others are: without this branch records take 13 % longer to decode
        found = byte & 0x7F | second << 7
        return (found >> 1) ^ -(found & 1), at + 1
    found, shift = byte & 0x7F, 7
    while byte > 0x7F:
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")
        byte = buffer[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
    if shift > 63:
        # kafka-python writes a 65th bit when two times lie too far apart; the broker drops it.
        found &= 2**64 - 1
    return (found >> 1) ^ -(found & 1), at


def _content(buffer: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes with their length before them, and where they end; None for a null."""
    size, start = _number(buffer, at)
    if size < 0:
        return None, start
    end = start + size
    return buffer[start:end], end
