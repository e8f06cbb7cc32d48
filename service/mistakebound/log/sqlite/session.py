"""The one worker's membership, as `mistakebound.log.protocol.Session`.

There is no group to balance: the session owns every partition, in generation 1, until another joins.
"""

import time
from collections.abc import Iterable

from mistakebound.core.records import INPUTS, Position, Record, Topic, TopicPartition, Transaction
from mistakebound.log.protocol import (
    Fenced,
    LogError,
    Polled,
    Receipt,
    Refused,
    StaleGeneration,
    TransactionFailed,
)
from mistakebound.log.sqlite import group, rows
from mistakebound.log.sqlite.database import Database

_GENERATION = 1
_SHORTEST_SLEEP_S = 0.001
_LONGEST_SLEEP_S = 0.02


class SqliteSession:
    """Newer sessions of the group fence it, whatever their slot. One thread at a time."""

    def __init__(
        self, database: Database, name: str, slot: str, ids: dict[TopicPartition, int], partitions: int
    ) -> None:
        self._database = database
        self._group = name
        self._slot = slot
        self._ids = ids
        self._partitions = tuple(range(partitions))
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._generation = 0  # until the first poll
        self._fence = f"{name}-worker"
        self._epoch = group.take_fence(database, self._fence)

    def poll(self, timeout_s: float) -> Polled:
        self._check_fence()
        if self._generation == 0:
            self._generation = _GENERATION
            return Polled(_GENERATION, self._partitions, ())
        deadline = time.monotonic() + timeout_s
        sleep_s = _SHORTEST_SLEEP_S
        while True:
            records = self._fetch()
            left_s = deadline - time.monotonic()
            if records or left_s <= 0:
                return Polled(_GENERATION, self._partitions, records)
            time.sleep(min(sleep_s, left_s))
            sleep_s = min(2 * sleep_s, _LONGEST_SLEEP_S)
            self._check_fence()

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        # Nothing to wait for: the predecessor's last commit ended before `join` could take the write lock.
        return group.committed(self._database, self._group, self._ids, partitions)

    def seek(self, partition: int, examples: int, labels: int) -> None:
        for topic, offset in zip(INPUTS, (examples, labels), strict=True):
            at = self._input(topic, partition)
            watermarks = rows.watermarks(self._database, [self._ids[at]])
            rows.check_within(at, offset, *watermarks[self._ids[at]])
            self._next[at] = offset

    def drained(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {at for at, left in self.undelivered(topic_partitions).items() if not left}

    def undelivered(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked = {at: self._ids[self._input(*at)] for at in topic_partitions if at in self._next}
        watermarks = rows.watermarks(self._database, asked.values())
        return {at: max(0, watermarks[side_id][1] - self._next[at]) for at, side_id in asked.items()}

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self._paused.update(self._input(*at) for at in topic_partitions)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(self._input(*at) for at in topic_partitions)

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        if generation != self._generation:
            raise StaleGeneration(f"the records are of generation {generation}, now it is {self._generation}")
        try:
            with self._database.transaction() as connection:
                group.check_fence(connection.execute, self._fence, self._epoch)
                ends = rows.insert(connection, self._ids, transaction.outputs)
                group.store(connection, self._group, self._ids, transaction.positions)
        except Fenced:
            raise
        except LogError as error:
            raise TransactionFailed(f"the transaction was given up: {error}") from error
        return Receipt(ends)

    def pass_damage(self) -> None:
        """Nothing: sqlite itself finds what is damaged, and the file as a whole is refused."""

    def close(self, timeout_s: float) -> None:
        self._next.clear()
        self._generation = 0

    def _input(self, topic: Topic, partition: int) -> TopicPartition:
        at = (topic, partition)
        if topic not in INPUTS or at not in self._ids:
            raise Refused(f"{topic}-{partition} is not an input of this worker (slot {self._slot!r})")
        return at

    def _check_fence(self) -> None:
        group.check_fence(self._database.rows, self._fence, self._epoch)

    def _fetch(self) -> list[Record]:
        """What is there now: at most `rows.CHUNK_ROWS` records, shared fairly among the inputs."""
        active = {at: self._ids[at] for at in self._next if at not in self._paused}
        watermarks = rows.watermarks(self._database, active.values())
        waiting: dict[TopicPartition, int] = {}
        for at, side_id in active.items():
            rows.check_within(at, self._next[at], *watermarks[side_id])
            if watermarks[side_id][1] > self._next[at]:
                waiting[at] = watermarks[side_id][1] - self._next[at]
        found: list[Record] = []
        for at, share in _shares(waiting, rows.CHUNK_ROWS).items():
            start = self._next[at]
            most_bytes = rows.CHUNK_BYTES // len(waiting)
            found += rows.select(self._database, at, active[at], start, start + share, most_bytes=most_bytes)
            self._next[at] = found[-1].offset + 1
        return found


def _shares(waiting: dict[TopicPartition, int], total: int) -> dict[TopicPartition, int]:
    """Split `total` evenly; what one input does not need goes to those that need more."""
    shares = {}
    for count, at in enumerate(sorted(waiting, key=waiting.__getitem__)):
        shares[at] = min(waiting[at], max(1, total // (len(waiting) - count)))
        total -= shares[at]
    return shares
