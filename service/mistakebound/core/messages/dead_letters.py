"""Dead letters: records that could not be read, kept as they were, with the reason and where they came from."""

from hashlib import sha256

from mistakebound.core.faults import BadRecord
from mistakebound.core.records import NAME_NOT_UTF8, Headers, Outgoing, Record

SHOWN_BY = "mistakebound tail dead-letters --from beginning --json"
"""What people are told to type."""


def dead_letter(record: Record, fault: BadRecord, largest: int) -> Outgoing:
    """The original key and value, cut to fit `largest` bytes, with the reason and source in headers.

    The reason, the source, and what was cut are always said: below about 700 bytes these alone may not fit.
    """
    detail = fault.detail.encode(errors="replace")[:500]
    headers: list[tuple[str, bytes | None]] = [
        ("mistakebound.reason", fault.reason.encode()),
        ("mistakebound.detail", detail),
        ("mistakebound.topic", record.topic.encode()),
        ("mistakebound.partition", str(record.partition).encode()),
        ("mistakebound.offset", str(record.offset).encode()),
        ("mistakebound.timestamp", str(record.timestamp_ms).encode()),
        # The words of a detail change with the version: an audit could not make them again.
        ("mistakebound.detail-sha256", sha256(detail).hexdigest().encode()),
    ]
    key, value = record.key, record.value
    whole = (
        *headers,
        *(
            (f"original.{name}" if name.startswith("mistakebound.") else name, x)
            for name, x in record.headers
            if name != NAME_NOT_UTF8  # the detail names it
        ),
    )  # the sender's own headers never pass for ours
    if record_bytes(key, value, whole) <= largest:
        return Outgoing("dead-letters", record.partition, key, value, whole)
    if record.headers:
        headers.append(("mistakebound.headers-dropped", str(len(record.headers)).encode()))
    for name, part in (("key", key), ("value", value)):
        if part is not None:
            headers.append((f"mistakebound.{name}-length", str(len(part)).encode()))
            headers.append((f"mistakebound.{name}-sha256", sha256(part).hexdigest().encode()))
    room = largest - record_bytes(None, None, tuple(headers))
    if room < 0 and detail:  # what came counts more than the words about it
        return dead_letter(record, BadRecord(fault.reason, ""), largest)
    room = max(0, room)
    key = None if key is None else key[: room // 4]
    value = None if value is None else value[: room - len(key or b"")]
    return Outgoing("dead-letters", record.partition, key, value, tuple(headers))


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of what a record takes in its topic, in bytes."""
    size = 32 + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name.encode()) + len(content or b"")
    return size
