"""Records to rows and back: where a record lies, how large it may be, how headers are packed."""

import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping

import msgspec

from mistakebound.core.records import INPUTS, Headers, Outgoing, Record, TopicPartition
from mistakebound.log.partitioner import partition_of
from mistakebound.log.protocol import OffsetLost, Refused
from mistakebound.log.sqlite.database import Database
from mistakebound.log.sqlite.schema import SPAN

_BATCH_BYTES = 1_048_588  # Kafka's default max.message.bytes: a record that fits here fits there
_FRAME_BYTES = 72  # what Kafka's batch adds to a single record
_HEADER_BYTES = 8  # and to each header, at most
SURE_BYTES = _BATCH_BYTES - _FRAME_BYTES - 64 * _HEADER_BYTES
"""Largest value + key + headers that always fits, with up to 64 headers."""

CHUNK_ROWS = 4_000
CHUNK_BYTES = 32_000_000

_unpack = msgspec.msgpack.Decoder(Headers).decode


def check_size(outgoing: Outgoing) -> None:
    """Raise Refused for a record that a Kafka broker would refuse by default."""
    size = _FRAME_BYTES + len(outgoing.key or b"") + len(outgoing.value or b"")
    for name, value in outgoing.headers:
        size += len(name.encode()) + len(value or b"") + _HEADER_BYTES
    if size > _BATCH_BYTES:
        raise Refused(
            f"a record for {outgoing.topic} of {size:,} bytes is above {_BATCH_BYTES:,} (headers and frame"
            " counted); make it smaller"
        )


def check_fits(outgoing: Outgoing, ids: Collection[TopicPartition], partitions: int) -> None:
    """Raise Refused for a record that no partition takes."""
    check_size(outgoing)
    if outgoing.partition >= 0 and (outgoing.topic, outgoing.partition) not in ids:
        raise Refused(f"topic {outgoing.topic} has no partition {outgoing.partition}, only {partitions}")


def placed(outgoing: Outgoing, partitions: int) -> Outgoing:
    """The record with its partition chosen by key, where it names none."""
    if outgoing.partition >= 0:
        return outgoing
    return outgoing._replace(partition=partition_of(outgoing.key, partitions))


def insert(
    connection: sqlite3.Connection, ids: Mapping[TopicPartition, int], outgoing: Iterable[Outgoing]
) -> dict[TopicPartition, int]:
    """Append records within the open transaction; the next offset of each partition written to.

    Raises Refused for a partition that does not exist, and for a record that is too large.
    """
    now_ms = time.time_ns() // 1_000_000
    ends: dict[TopicPartition, int] = {}
    rows = []
    for record in outgoing:
        at = (record.topic, record.partition)
        side_id = ids.get(at)
        if side_id is None:
            raise Refused(f"topic {record.topic} has no partition {record.partition}")
        check_size(record)
        offset = ends.get(at)
        if offset is None:
            offset = connection.execute("SELECT next FROM sides WHERE id = ?", (side_id,)).fetchone()[0]
        stamp = now_ms if record.timestamp_ms is None else record.timestamp_ms
        headers = msgspec.msgpack.encode(record.headers) if record.headers else None
        rows.append((side_id * SPAN + offset, stamp, record.key, record.value, headers))
        ends[at] = offset + 1
    connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
    connection.executemany(
        "UPDATE sides SET next = ? WHERE id = ?", [(end, ids[at]) for at, end in ends.items()]
    )
    return ends


def watermarks(database: Database, ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Of each row id of `sides`: the oldest offset kept, and the one after the newest; all as of one moment."""
    if not ids:
        return {}
    marks = ", ".join("?" * len(ids))
    found = database.rows(f"SELECT id, low, next FROM sides WHERE id IN ({marks})", tuple(ids))  # noqa: S608
    return {side_id: (low, end) for side_id, low, end in found}


def check_within(at: TopicPartition, offset: int, low: int, end: int) -> None:
    """Raise OffsetLost unless low <= offset <= end."""
    if not low <= offset <= end:
        way_on = "; `mistakebound run --skip-to-oldest` goes on from the oldest that is there, and counts what was lost"
        raise OffsetLost(
            f"offset {offset} of {at[0]}-{at[1]} is not in the log, which holds {low} to {end}"
            f"{way_on if offset < low and at[0] in INPUTS else ''}"
        )


def select(
    database: Database, at: TopicPartition, side_id: int, start: int, stop: int, *, most_bytes: int
) -> list[Record]:
    """Records with start <= offset < stop, in order, until `most_bytes` are exceeded; at least one."""
    topic, partition = at
    first = side_id * SPAN
    found = database.rows_up_to(
        most_bytes,
        "SELECT place, timestamp_ms, key, value, headers FROM records"
        " WHERE place >= ? AND place < ? ORDER BY place",
        (first + start, first + stop),
    )
    return [
        Record(topic, partition, place - first, timestamp_ms, key, value, _unpack(headers) if headers else ())
        for place, timestamp_ms, key, value, headers in found
    ]
