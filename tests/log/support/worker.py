"""A worker of the tests: the few lines of loop that every user of a session needs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mistakebound.core.records import Outgoing, Position, Record, Topic, TopicPartition, Transaction
from mistakebound.log.protocol import Log, Receipt, Session

PATIENCE_S = 60.0


@dataclass
class Worker:
    """Joins, seeks to the committed positions (or the start), and counts what it has read."""

    log: Log
    slot: str = "slot"
    session: Session = field(init=False)
    generation: int = field(init=False)
    read: dict[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        self.session = self.log.join(self.slot)

    def start(self) -> "Worker":
        """Poll until every partition is owned, then seek each."""
        everything = tuple(range(self.log.partitions))
        for _ in _attempts():
            polled = self.session.poll(0.1)
            if polled.partitions == everything:
                break
        else:
            raise AssertionError(f"partitions {polled.partitions} were given, not {everything}")
        assert not polled.records, "records came before any partition was sought"
        self.generation = polled.generation
        self.read = {}
        for partition, position in self.session.committed(everything).items():
            self.seek(partition, *(position[:2] if position else (0, 0)))
        return self

    def seek(self, partition: int, examples: int, labels: int) -> None:
        self.session.seek(partition, examples, labels)
        self.read["examples", partition], self.read["labels", partition] = examples, labels

    def poll(self, timeout_s: float = 0.1) -> Sequence[Record]:
        polled = self.session.poll(timeout_s)
        assert self.generation == polled.generation
        for record in polled.records:
            self.read[record.topic, record.partition] = record.offset + 1
        return polled.records

    def take(self, count: int) -> list[Record]:
        """The next records, at least `count`."""
        taken: list[Record] = []
        for _ in _attempts():
            taken += self.poll()
            if len(taken) >= count:
                return taken
        raise AssertionError(f"{len(taken)} records came, not {count}")

    def commit(
        self, outputs: Sequence[Outgoing] = (), metadata: str = "", generation: int | None = None
    ) -> Receipt:
        """Commit outputs and the positions of all that was read."""
        positions = {
            partition: Position(self.read["examples", partition], self.read["labels", partition], metadata)
            for topic, partition in self.read
            if topic == "examples"
        }
        now = self.generation if generation is None else generation
        return self.session.commit(Transaction(outputs, positions), now)

    def until_drained(self, sides: set[TopicPartition]) -> list[Record]:
        """Poll until `sides` are drained; what came meanwhile."""
        taken: list[Record] = []
        for _ in _attempts():
            if sides == self.session.drained(sides):
                return taken
            taken += self.poll(0.05)
        raise AssertionError(f"only {self.session.drained(sides)} of {sides} drained")

    def close(self) -> None:
        self.session.close(10)


def _attempts() -> Iterator[None]:
    """Turns of a wait that must end: as many as fit into the tests' patience."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        yield


def example(partition: int, value: bytes | None, key: bytes | None = b"k", **more: object) -> Outgoing:
    return Outgoing("examples", partition, key, value, **more)  # type: ignore[arg-type]


def values(log: Log, topic: Topic, partition: int) -> list[bytes | None]:
    """All values of a partition."""
    return [record.value for record in log.read(topic, partition, 0)]


def outputs(log: Log) -> Mapping[Topic, int]:
    """How many committed records each output topic holds."""
    return {
        topic: sum(len(values(log, topic, partition)) for partition in range(log.partitions))
        for topic in ("predictions", "outcomes", "updates", "dead-letters")
    }
