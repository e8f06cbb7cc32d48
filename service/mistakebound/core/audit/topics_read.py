"""What an audit reads: topics, partition by partition, from a log or a recording."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from mistakebound.core.records import Position, Record, Topic


class Source(Protocol):
    """Committed records only, in offset order; every call reads from the topic's beginning again."""

    @property
    def partitions(self) -> int:
        """Partition count P of every topic."""
        ...

    def read(self, topic: Topic, partition: int) -> Iterator[Record]:
        """All records of one partition, read as they are asked for; `outcomes` to their end at the start."""
        ...

    def begins_late(self, topic: Topic, partition: int) -> bool:
        """Whether its first records were deleted."""
        ...

    def goes_on(self, partition: int, after: int) -> bool:
        """Whether `outcomes` of the partition has records beyond the offset `after` by now."""
        ...

    def positions(self) -> Mapping[int, Position | None]:
        """What the group has committed by now, by partition; empty where that cannot be known."""
        ...


class Ahead:
    """One partition of a topic, with a look at its next record. It reads only when asked, so never too early."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self._next: Record | None = None

    def peek(self) -> Record | None:
        """The next record; None at the end."""
        if self._next is None:
            self._next = next(self._records, None)
        return self._next

    def take(self) -> Record | None:
        """Consume the next record."""
        taken, self._next = self.peek(), None
        return taken
