"""Buffered records in record-time order, and which inputs to pause.

Within a partition the older of the two heads comes first; at equal times the example; within a topic
the offset decides. A record may be taken while both inputs are buffered, or while the empty one is
drained, so that nothing can come before it (as with Kafka Streams' `max.task.idle.ms=0`). So a backlog
gives the same outcomes as a live stream, and a complete stream has one order, however it is read in batches.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from mistakebound.core.records import Record, Topic, TopicPartition


class Merge:
    """Buffers of both inputs of the owned partitions. All buffered records are of one generation."""

    def __init__(
        self, partitions: Iterable[int], capacity: int = 8_000, capacity_bytes: int = 64_000_000
    ) -> None:
        """`capacity` records of each input, `capacity_bytes` of all together: an input with more is paused."""
        self._buffers: dict[int, tuple[deque[Record], deque[Record]]] = {
            p: (deque(), deque()) for p in sorted(partitions)
        }
        self._bytes = {p: [0, 0] for p in self._buffers}
        """Bytes buffered of each input, or more: what was taken is subtracted only when it matters."""
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes // max(1, 2 * len(self._buffers))
        """Of each input of one partition."""
        self.paused: set[TopicPartition] = set()

    def add(self, records: Iterable[Record]) -> int:
        """Buffer what a poll returned, in order; returns its size in bytes."""
        added = 0
        for record in records:
            partition, is_label, size = record.partition, record.topic == "labels", _size(record)
            self._buffers[partition][is_label].append(record)
            self._bytes[partition][is_label] += size
            added += size
        return added

    def buffered(self) -> list[int]:
        """Partitions with something to do, ascending."""
        return [p for p, (examples, labels) in self._buffers.items() if examples or labels]

    def count(self, topic: Topic, partition: int) -> int:
        """How many records of this input are buffered."""
        both = self._buffers.get(partition)
        return 0 if both is None else len(both[topic == "labels"])

    def ready(self) -> int:
        """About how many records can be taken without asking whether any input is drained."""
        return sum(2 * min(len(examples), len(labels)) for examples, labels in self._buffers.values())

    def dry(self) -> list[TopicPartition]:
        """Empty inputs of partitions whose other input is buffered: the log must be asked whether they are drained."""
        return [
            ("labels" if examples else "examples", p)
            for p, (examples, labels) in self._buffers.items()
            if bool(examples) != bool(labels)
        ]

    def peek(self, partition: int, drained: Collection[TopicPartition]) -> Record | None:
        """The next record, if it is certain that none comes before it."""
        examples, labels = self._buffers[partition]
        if examples and labels:
            return examples[0] if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels[0]
        if examples and ("labels", partition) in drained:
            return examples[0]
        if labels and ("examples", partition) in drained:
            return labels[0]
        return None

    def take(self, partition: int, drained: Collection[TopicPartition]) -> Iterator[Record]:
        """Consume the records that `peek` would give, one by one; nothing may be added meanwhile."""
        examples, labels = self._buffers[partition]
        while examples and labels:
            first = examples if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels
            yield first.popleft()
        while examples and ("labels", partition) in drained:
            yield examples.popleft()
        while labels and ("examples", partition) in drained:
            yield labels.popleft()

    def put_back(self, record: Record) -> None:
        """Give back the record taken last: it has to wait."""
        self._buffers[record.partition][record.topic == "labels"].appendleft(record)

    def pausing(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """(inputs to pause, inputs to resume): paused beyond either capacity, resumed once both are half free."""
        pause: set[TopicPartition] = set()
        resume: set[TopicPartition] = set()
        for p, both in self._buffers.items():
            topics: tuple[Topic, Topic] = ("examples", "labels")
            for is_label, (topic, buffer) in enumerate(zip(topics, both, strict=True)):
                size = self._bytes[p][is_label]
                if size >= self._capacity_bytes or (topic, p) in self.paused:
                    size = self._bytes[p][is_label] = sum(map(_size, buffer))
                if (topic, p) not in self.paused:
                    if len(buffer) >= self._capacity or size >= self._capacity_bytes:
                        pause.add((topic, p))
                elif len(buffer) <= self._capacity // 2 and size <= self._capacity_bytes // 2:
                    resume.add((topic, p))
        self.paused = (self.paused | pause) - resume
        return pause, resume


def _size(record: Record) -> int:
    size = len(record.value or b"") + len(record.key or b"")
    if record.headers:
        size += sum(len(name) + len(content or b"") for name, content in record.headers)
    return size
