"""Buffered records in record-time order, and which inputs to pause.

Within a partition the older of the two heads comes first; at equal times the example; within a topic
the offset decides. A record may be taken while both inputs are buffered, or while the empty one is
drained, so that nothing can come before it (as with Kafka Streams' `max.task.idle.ms=0`). So a backlog
gives the same outcomes as a live stream, and a complete stream has one order, however it is read in batches.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from mistakebound.core.records import Record, Topic, TopicPartition


class _Input:
    """One input of a partition as far as it is buffered."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self._added = 0
        """Records ever added."""
        self._adding = 0
        """Bytes added since the last portion was closed."""
        self._portions: deque[tuple[int, int]] = deque()
        """What each poll brought of it: the number of its last record, and bytes."""
        self._bytes = 0
        """Of these portions."""

    def add(self, record: Record) -> None:
        self.records.append(record)
        self._added += 1
        size = len(record.value or b"") + len(record.key or b"")
        if record.headers:
            size += sum(len(name) + len(content or b"") for name, content in record.headers)
        self._adding += size

    def close_portion(self) -> int:
        """What was added since the last one belongs together; returns its bytes."""
        size, self._adding = self._adding, 0
        if size:
            self._portions.append((self._added, size))
            self._bytes += size
        return size

    def bytes(self) -> int:
        """Bytes buffered, or more: a portion counts until all of it is taken. To count them anew record by record, whenever it
        matters, takes 2 % longer on a long backlog."""
        taken = self._added - len(self.records)
        while self._portions and self._portions[0][0] <= taken:
            self._bytes -= self._portions.popleft()[1]
        return self._bytes


class Merge:
    """Buffers of both inputs of the owned partitions. All buffered records are of one generation."""

    def __init__(
        self, partitions: Iterable[int], capacity: int = 8_000, capacity_bytes: int = 64_000_000
    ) -> None:
        """`capacity` records of each input, `capacity_bytes` of all together: an input with more is paused."""
        self._inputs: dict[int, tuple[_Input, _Input]] = {p: (_Input(), _Input()) for p in sorted(partitions)}
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes // max(1, 2 * len(self._inputs))
        """Of each input of one partition."""
        self.paused: set[TopicPartition] = set()

    def add(self, records: Iterable[Record]) -> int:
        """Buffer what a poll returned, in order; returns its size in bytes."""
        for record in records:
            self._inputs[record.partition][record.topic == "labels"].add(record)
        return sum(each.close_portion() for both in self._inputs.values() for each in both)

    def buffered(self) -> list[int]:
        """Partitions with something to do, ascending."""
        return [p for p, (examples, labels) in self._inputs.items() if examples.records or labels.records]

    def count(self, topic: Topic, partition: int) -> int:
        """How many records of this input are buffered."""
        both = self._inputs.get(partition)
        return 0 if both is None else len(both[topic == "labels"].records)

    def ready(self) -> int:
        """About how many records can be taken without asking whether any input is drained."""
        return sum(
            2 * min(len(examples.records), len(labels.records)) for examples, labels in self._inputs.values()
        )

    def dry(self) -> list[TopicPartition]:
        """Empty inputs of partitions whose other input is buffered: the log must be asked whether they are drained."""
        return [
            ("labels" if examples.records else "examples", p)
            for p, (examples, labels) in self._inputs.items()
            if bool(examples.records) != bool(labels.records)
        ]

    def peek(self, partition: int, drained: Collection[TopicPartition]) -> Record | None:
        """The next record, if it is certain that none comes before it."""
        examples, labels = (each.records for each in self._inputs[partition])
        if examples and labels:
            return examples[0] if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels[0]
        if examples and ("labels", partition) in drained:
            return examples[0]
        if labels and ("examples", partition) in drained:
            return labels[0]
        return None

    def take(self, partition: int, drained: Collection[TopicPartition]) -> Iterator[Record]:
        """Consume the records that `peek` would give, one by one; nothing may be added meanwhile."""
        examples, labels = (each.records for each in self._inputs[partition])
        while examples and labels:
            first = examples if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels
            yield first.popleft()
        while examples and ("labels", partition) in drained:
            yield examples.popleft()
        while labels and ("examples", partition) in drained:
            yield labels.popleft()

    def put_back(self, record: Record) -> None:
        """Give back the record taken last: it has to wait."""
        self._inputs[record.partition][record.topic == "labels"].records.appendleft(record)

    def pausing(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """(inputs to pause, inputs to resume): paused beyond either capacity, resumed once both are half free."""
        pause: set[TopicPartition] = set()
        resume: set[TopicPartition] = set()
        topics: tuple[Topic, Topic] = ("examples", "labels")
        for p, both in self._inputs.items():
            for topic, each in zip(topics, both, strict=True):
                held, size = len(each.records), each.bytes()
                if (topic, p) not in self.paused:
                    if held >= self._capacity or size >= self._capacity_bytes:
                        pause.add((topic, p))
                elif held <= self._capacity // 2 and size <= self._capacity_bytes // 2:
                    resume.add((topic, p))
        self.paused = (self.paused | pause) - resume
        return pause, resume
