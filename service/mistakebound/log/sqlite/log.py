"""A set of topics in a sqlite database, as `mistakebound.log.protocol.Log`."""

import json
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

from mistakebound.core.records import TOPICS, Outgoing, Position, Record, Topic, TopicPartition
from mistakebound.log.protocol import (
    Log,
    LogError,
    OffsetLost,
    Refused,
    TopicDescription,
    equal_partitions,
)
from mistakebound.log.sqlite import group, rows
from mistakebound.log.sqlite.database import Database
from mistakebound.log.sqlite.session import SqliteSession
from mistakebound.settings import Settings

_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "CreateTime"}
_APPEND_EVERY_S = 0.05
_FOLLOW_SLEEP_S = 0.02
_FOLLOW_EMPTY_S = 0.5


class SqliteLog(Log):
    """Safe to share between threads; its sessions are not."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._database = database
        self._group = settings.group
        self._names: dict[Topic, str] = {topic: settings.topic_name(topic) for topic in TOPICS}
        self._known_ids: dict[TopicPartition, int] = {}
        self._closed = False

    @property
    def partitions(self) -> int:
        if not self._database.exists():
            raise Refused(
                f"there is no log {self._database.name}: make it with `mistakebound topics create`, or correct log.url"
            )
        counts = {
            self._names[topic]: None if found is None else found.partitions
            for topic, found in self.describe().items()
        }
        return equal_partitions(counts, f"in {self._database.name}")

    def describe(self) -> dict[Topic, TopicDescription | None]:
        query = "SELECT name, uid, partitions, config FROM topics"
        found = self._database.rows(query) if self._database.exists() else ()
        described = {
            name: TopicDescription(name, uid, p, json.loads(config)) for name, uid, p, config in found
        }
        return {topic: described.get(name) for topic, name in self._names.items()}

    def create_topics(self, partitions: int, config: Mapping[Topic, Mapping[str, str]]) -> list[str]:
        if partitions < 1:
            raise Refused(f"a topic cannot have {partitions} partitions; at least 1")
        created = []
        self._database.create()
        with self._database.transaction() as connection:
            for topic, name in self._names.items():
                if connection.execute("SELECT 1 FROM topics WHERE name = ?", (name,)).fetchone():
                    continue
                number = connection.execute(
                    "INSERT INTO topics (name, uid, partitions, config) VALUES (?, ?, ?, ?)",
                    (name, uuid.uuid4().hex, partitions, json.dumps({**_CONFIG, **config.get(topic, {})})),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO sides (topic, partition) VALUES (?, ?)",
                    [(number, partition) for partition in range(partitions)],
                )
                created.append(name)
        return created

    def low_watermark(self, topic: Topic, partition: int) -> int:
        return self._watermarks((topic, partition))[0]

    def high_watermark(self, topic: Topic, partition: int) -> int:
        return self._watermarks((topic, partition))[1]

    def stable_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self._watermarks(at)[1] for at in topic_partitions}

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None = None, *, wait_s: float = 30.0
    ) -> Iterator[Record]:
        # Nobody waits here: the high watermark counts committed records only.
        at = (topic, partition)
        low, end = self._watermarks(at)
        rows.check_within(at, start, low, end)
        return self._read(at, start, end if stop is None else min(stop, end))

    def follow(self, starts: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        positions = dict(starts)
        for at, start in positions.items():
            rows.check_within(at, start, *self._watermarks(at))
        return self._follow(positions)

    def append(self, records: Iterable[Outgoing]) -> int:
        """As the protocol says; committed every 50 ms, 4,000 records or 32 MB, whichever comes first, so that a
        slow iterable's records are seen as they come."""
        ids, partitions = self._ids(), self.partitions
        waiting: list[Outgoing] = []
        count, size, since = 0, 0, time.monotonic()
        try:
            for record in records:
                try:
                    rows.check_fits(record, ids, partitions)
                except Refused:
                    written, waiting = waiting, []
                    count += self._insert(ids, written)
                    raise
                waiting.append(rows.placed(record, partitions))
                size += len(record.value or b"")
                full = len(waiting) >= rows.CHUNK_ROWS or size > rows.CHUNK_BYTES
                if full or time.monotonic() - since > _APPEND_EVERY_S:
                    count += self._insert(ids, waiting)
                    size, waiting, since = 0, [], time.monotonic()
            return count + self._insert(ids, waiting)
        except LogError as error:
            error.acknowledged = count
            raise

    def partition_count(self, topic: Topic) -> int:
        found = self.describe()[topic]
        if found is None:
            raise Refused(f"topic {self._names[topic]} is missing; make it with `mistakebound topics create`")
        return found.partitions

    def other_readers(self) -> dict[str, frozenset[Topic]]:
        return group.others(self._database, self._group, self._ids())

    def group_positions(self) -> dict[int, Position | None]:
        return group.committed(self._database, self._group, self._ids(), range(self.partitions))

    def exclusively(self, decide: Callable[[], Sequence[Outgoing]]) -> int:
        # The write lock is not held while `decide` runs: the fence alone keeps callers apart, as on Kafka.
        ids, partitions = self._ids(), self.partitions
        transactional_id = f"{self._group}-epoch"
        epoch = group.take_fence(self._database, transactional_id)
        outgoing = [rows.placed(record, partitions) for record in decide()]
        with self._database.transaction() as connection:
            group.check_fence(connection.execute, transactional_id, epoch)
            rows.insert(connection, ids, outgoing)
        return len(outgoing)

    def try_transactions(self) -> None:
        return None

    def max_record_bytes(self, topic: Topic) -> int:
        return rows.SURE_BYTES

    def join(self, slot: str) -> SqliteSession:
        return SqliteSession(self._database, self._group, slot, self._ids(), self.partitions)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._database.close()

    def _ids(self) -> dict[TopicPartition, int]:
        """Row id of every topic's every partition. They never change, so they are asked for once."""
        if not self._known_ids:
            assert self.partitions  # refuses when topics are missing
            topics = {name: topic for topic, name in self._names.items()}
            query = "SELECT name, partition, sides.id FROM sides JOIN topics ON topics.id = topic"
            sides = self._database.rows(query)
            self._known_ids = {(topics[name], p): side_id for name, p, side_id in sides if name in topics}
        return self._known_ids

    def _id(self, at: TopicPartition) -> int:
        side_id = self._ids().get(at)
        if side_id is None:
            raise Refused(f"topic {at[0]} has no partition {at[1]}")
        return side_id

    def _watermarks(self, at: TopicPartition) -> tuple[int, int]:
        side_id = self._id(at)
        return rows.watermarks(self._database, [side_id])[side_id]

    def _insert(self, ids: Mapping[TopicPartition, int], outgoing: Sequence[Outgoing]) -> int:
        if outgoing:
            with self._database.transaction() as connection:
                rows.insert(connection, ids, outgoing)
        return len(outgoing)

    def _read(self, at: TopicPartition, start: int, stop: int) -> Iterator[Record]:
        side_id = self._id(at)
        while start < stop:
            until = min(stop, start + rows.CHUNK_ROWS)
            found = rows.select(self._database, at, side_id, start, until, most_bytes=rows.CHUNK_BYTES)
            if not found:
                low, end = self._watermarks(at)
                raise OffsetLost(f"offset {start} of {at[0]}-{at[1]} is gone, the log holds {low} to {end}")
            yield from found
            start = found[-1].offset + 1

    def _follow(self, positions: dict[TopicPartition, int]) -> Generator[Sequence[Record]]:
        ids = {at: self._id(at) for at in positions}
        spoken = time.monotonic()
        while True:
            ends = rows.watermarks(self._database, ids.values())
            batch: list[Record] = []
            for at, side_id in ids.items():
                start, end = positions[at], ends[side_id][1]
                if end > start:
                    stop = min(end, start + rows.CHUNK_ROWS)
                    batch += rows.select(
                        self._database, at, side_id, start, stop, most_bytes=rows.CHUNK_BYTES
                    )
                    positions[at] = batch[-1].offset + 1
            if batch or time.monotonic() - spoken >= _FOLLOW_EMPTY_S:
                yield batch
                spoken = time.monotonic()
            else:
                time.sleep(_FOLLOW_SLEEP_S)
