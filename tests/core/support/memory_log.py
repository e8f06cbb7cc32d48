"""A log in plain lists, for the rebuild's properties: committed records, and gaps where Kafka has markers.

It implements as much of `mistakebound.log.protocol` as `take_over` uses.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from mistakebound.core.records import OUTPUTS, Outgoing, Position, Record, Topic, TopicPartition, Transaction
from mistakebound.log.protocol import OffsetLost


class MemoryLog:
    """The output topics of P partitions, and the group's positions."""

    def __init__(self, partitions: int, largest: int = 1_000_000) -> None:
        self.partitions = partitions
        self.largest = largest
        self.records: dict[TopicPartition, list[Record]] = {
            (t, p): [] for t in OUTPUTS for p in range(partitions)
        }
        self.next: dict[TopicPartition, int] = dict.fromkeys(self.records, 0)
        self.lost: dict[TopicPartition, int] = {}
        self.positions: dict[int, Position] = {}

    def commit(self, transaction: Transaction, *, marker: bool) -> dict[TopicPartition, int]:
        """Keep the transaction; the next offsets as a receipt has them: before the marker."""
        ends: dict[TopicPartition, int] = {}
        for outgoing in transaction.outputs:
            topic_partition = (outgoing.topic, outgoing.partition)
            offset = self.next[topic_partition]
            self.records[topic_partition].append(
                Record(*topic_partition, offset, 0, outgoing.key, outgoing.value, tuple(outgoing.headers))
            )
            self.next[topic_partition] = ends[topic_partition] = offset + 1
        for topic_partition in ends:
            self.next[topic_partition] += marker
        self.positions.update(transaction.positions)
        return ends

    def abort(self, outputs: Iterable[Outgoing], *, marker: bool) -> None:
        """An aborted transaction: nothing is ever seen of it but the offsets that it took."""
        touched: set[TopicPartition] = set()
        for outgoing in outputs:
            topic_partition = (outgoing.topic, outgoing.partition)
            self.next[topic_partition] += 1
            touched.add(topic_partition)
        for topic_partition in touched:
            self.next[topic_partition] += marker

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None = None, *, wait_s: float = 30.0
    ) -> Iterator[Record]:
        topic_partition = (topic, partition)
        low, high = self.low_watermark(topic, partition), self.next[topic_partition]
        if not low <= start <= high:
            raise OffsetLost(f"offset {start} of {topic}-{partition} is not in {low} to {high}")
        found = self.records[topic_partition]
        first = bisect_left(found, start, key=lambda record: record.offset)
        last = len(found) if stop is None else bisect_left(found, stop, key=lambda record: record.offset)
        return iter(found[first:last])

    def low_watermark(self, topic: Topic, partition: int) -> int:
        return self.lost.get((topic, partition), 0)

    def high_watermark(self, topic: Topic, partition: int) -> int:
        return self.next[topic, partition]

    def stable_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.next[each] for each in topic_partitions}

    def max_record_bytes(self, topic: Topic) -> int:
        return self.largest


class MemorySession:
    """What `take_over` asks of a session."""

    def __init__(self, log: MemoryLog, *, forgotten: bool = False) -> None:
        self._log, self._forgotten = log, forgotten
        self.sought: dict[int, tuple[int, int]] = {}

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        known = {} if self._forgotten else self._log.positions
        return {p: known.get(p) for p in partitions}

    def seek(self, partition: int, examples: int, labels: int) -> None:
        self.sought[partition] = (examples, labels)
