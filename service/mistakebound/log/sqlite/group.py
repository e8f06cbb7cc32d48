"""A consumer group's positions and its fences."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping

from mistakebound.core.records import INPUTS, Position, Topic, TopicPartition
from mistakebound.log.protocol import Fenced, Refused
from mistakebound.log.sqlite.database import Database

_METADATA_BYTES = 4_096
_EPOCH = "SELECT epoch FROM fences WHERE transactional_id = ?"


def take_fence(database: Database, transactional_id: str) -> int:
    """Shut out all earlier holders of `transactional_id`; the epoch to show from now on."""
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO fences VALUES (?, 1) ON CONFLICT DO UPDATE SET epoch = epoch + 1",
            (transactional_id,),
        )
        epoch: int = connection.execute(_EPOCH, (transactional_id,)).fetchone()[0]
        return epoch


def check_fence(
    query: Callable[[str, tuple[str]], Iterable[tuple[int]]], transactional_id: str, epoch: int
) -> None:
    """Raise Fenced unless `query`, within a transaction or outside, finds that `epoch` is still the newest."""
    if [epoch] != [row[0] for row in query(_EPOCH, (transactional_id,))]:
        raise Fenced(f"another process took over {transactional_id!r} after this one; run only one of them")


def committed(
    database: Database, group: str, ids: Mapping[TopicPartition, int], partitions: Iterable[int]
) -> dict[int, Position | None]:
    """The group's position of each partition, both inputs as of one moment."""
    held = database.rows("SELECT side, next, metadata FROM positions WHERE consumer = ?", (group,))
    found = {side_id: (offset, metadata) for side_id, offset, metadata in held}
    positions: dict[int, Position | None] = {}
    for partition in partitions:
        examples, labels = (found.get(ids[topic, partition]) for topic in INPUTS)
        positions[partition] = Position(examples[0], labels[0], examples[1]) if examples and labels else None
    return positions


def others(database: Database, group: str, ids: Mapping[TopicPartition, int]) -> dict[str, frozenset[Topic]]:
    """Other groups with positions on these inputs, and on which."""
    topics = {ids[at]: at[0] for at in ids if at[0] in INPUTS}
    found: dict[str, set[Topic]] = {}
    for consumer, side_id in database.rows("SELECT consumer, side FROM positions"):
        if consumer != group and side_id in topics:
            found.setdefault(consumer, set()).add(topics[side_id])
    return {consumer: frozenset(inputs) for consumer, inputs in found.items()}


def store(
    connection: sqlite3.Connection,
    group: str,
    ids: Mapping[TopicPartition, int],
    positions: Mapping[int, Position],
) -> None:
    """Write positions within the open transaction. The metadata goes with the examples' offset, as on Kafka."""
    entries = []
    for partition, position in positions.items():
        if ("examples", partition) not in ids:
            raise Refused(f"there is no partition {partition} to commit a position for")
        size = len(position.metadata.encode())
        if size > _METADATA_BYTES:
            raise Refused(
                f"the metadata of partition {partition} has {size:,} bytes, at most {_METADATA_BYTES:,} fit"
            )
        entries.append((group, ids["examples", partition], position.examples, position.metadata))
        entries.append((group, ids["labels", partition], position.labels, ""))
    connection.executemany("REPLACE INTO positions VALUES (?, ?, ?, ?)", entries)
