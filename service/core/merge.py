"""Buffered records in record-time order, and which inputs to pause.

Within a partition the older of the two heads comes first; at equal times the example; within a topic
the offset decides. A record may be taken while both sides are buffered, or while the empty side is
drained: nothing more is there to come before it (Kafka Streams' `max.task.idle.ms=0`). So a backlog
gives the outcomes of a live stream, and a complete stream one order whatever the batches.
"""

from collections import deque
from collections.abc import Collection, Iterable

from service.core.records import Record, Topic

Side = tuple[Topic, int]


class Merge:
    """Buffers of both inputs of the owned partitions. All buffered records are of one generation."""

    def __init__(self, partitions: Iterable[int], capacity: int = 8_000) -> None:
        self._buffers: dict[int, tuple[deque[Record], deque[Record]]] = {
            p: (deque(), deque()) for p in sorted(partitions)
        }
        self._capacity = capacity
        self.paused: set[Side] = set()

    def add(self, records: Iterable[Record]) -> None:
        """Buffer what a poll brought, in its order."""
        for record in records:
            self._buffers[record.partition][record.topic == "labels"].append(record)

    def buffered(self) -> list[int]:
        """Partitions with something to do, ascending."""
        return [p for p, (examples, labels) in self._buffers.items() if examples or labels]

    def dry(self) -> list[Side]:
        """Empty sides whose other side is buffered: whether these are drained must be asked."""
        sides: list[Side] = []
        for p, (examples, labels) in self._buffers.items():
            if labels and not examples:
                sides.append(("examples", p))
            if examples and not labels:
                sides.append(("labels", p))
        return sides

    def peek(self, partition: int, drained: Collection[Side]) -> Record | None:
        """The next record, if it is certain that none comes before it."""
        examples, labels = self._buffers[partition]
        if examples and labels:
            return examples[0] if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels[0]
        if examples and ("labels", partition) in drained:
            return examples[0]
        if labels and ("examples", partition) in drained:
            return labels[0]
        return None

    def take(self, record: Record) -> None:
        """Consume the record that `peek` gave."""
        taken = self._buffers[record.partition][record.topic == "labels"].popleft()
        assert taken is record

    def pausing(self) -> tuple[set[Side], set[Side]]:
        """(sides to pause, sides to resume): a side over its capacity waits until it is half empty."""
        pause: set[Side] = set()
        resume: set[Side] = set()
        for p, both in self._buffers.items():
            topics: tuple[Topic, Topic] = ("examples", "labels")
            for topic, buffer in zip(topics, both, strict=True):
                if len(buffer) >= self._capacity and (topic, p) not in self.paused:
                    pause.add((topic, p))
                elif len(buffer) <= self._capacity // 2 and (topic, p) in self.paused:
                    resume.add((topic, p))
        self.paused = (self.paused | pause) - resume
        return pause, resume
