"""The log protocol: what the worker asks of sqlite and of Kafka alike.

Guarantees that every implementation gives, and `tests/log/contract` checks on each:

1. Offsets of a partition grow in append order. They may have gaps (Kafka's transaction markers).
2. Readers see committed records only; an aborted transaction is never seen, by anyone.
3. A transaction's outputs and positions become visible together or not at all.
4. A transaction is refused (`StaleGeneration`) unless its generation still owns its partitions, and
   (`Fenced`) once another process has taken its slot.
5. `Session.committed` answers only after the previous owner's transaction has ended.
6. `Log.read` reaches the high watermark of the moment it was called, waits for transactions open below it,
   and fails with `Unreachable` when they do not end in time; it never misses a committed record.

Not guaranteed: an order between partitions, or between topics.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from mistakebound.core.records import Outgoing, Position, Record, Topic, TopicPartition, Transaction


class LogError(Exception):
    """The log could not do what was asked. The message says what to do about it."""

    acknowledged = 0
    """Raised by `append`: so many of its first records are in the log; the next one is the first that may not be."""


class Unreachable(LogError):
    """The broker or file does not answer, is wrong, or did not answer in time (exit code 4)."""


class Misconfigured(LogError):
    """Options of the log's own client cannot be used; there is a text for each (exit code 2)."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.args))


class Refused(LogError):
    """Going on would lose or duplicate data, or the topics are not as they must be (exit code 5)."""


class OffsetLost(Refused):
    """A position lies below the log's start or above its end."""


class Fenced(LogError):
    """Another process took this worker's slot (exit code 6 when it happens again)."""


class StaleGeneration(LogError):
    """The group moved on while the step ran. Nothing was written; roll back and poll again."""


class TransactionFailed(LogError):
    """The transaction was given up, or nobody knows how it ended: the broker fell silent at the very commit.

    Rebuild from the log, which knows. Call `Session.committed` first: it ends what is open under the slot.
    """


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """What `topics check` looks at. `config` holds broker settings by Kafka's names, as strings."""

    name: str
    id: str
    """Differs once a topic of the same name is deleted and made again."""
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll brought. All records belong to `generation`."""

    generation: int
    """Grows with every change of assignment. When it differs from that of the poll before, `records` is empty and each
    owned partition waits for `seek`."""
    partitions: tuple[int, ...]
    """Partitions owned, ascending: both inputs of each."""
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a committed transaction went: the offset after its last record in each partition."""

    ends: Mapping[TopicPartition, int]


class Session(Protocol):
    """One process's membership of the group, with its transactional writer. Not thread-safe."""

    def poll(self, timeout_s: float) -> Polled:
        """Return buffered input records, waiting at most `timeout_s` for the first.

        Raises OffsetLost, Unreachable, Fenced.
        """

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        """Committed positions; None where the group never committed the partition."""

    def seek(self, partition: int, examples: int, labels: int) -> None:
        """Read both inputs of an owned partition from these offsets on."""

    def drained(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of which `poll` has returned every committed record.

        Asks the log itself (last stable offset), never a cache; one round trip for all.
        """

    def undelivered(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How many offsets of each lie between what `poll` has returned or passed and the last stable offset.

        0 for those that are drained: markers and aborted records behind the last record count as passed. Those
        that wait for `seek` are left out. Asks the log itself; one round trip for all.
        """

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop delivering these; their position stays. A new generation forgets that they were paused."""

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Deliver these again, from where they were paused."""

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        """Write outputs and positions in one transaction of `generation`.

        Raises StaleGeneration, Fenced, TransactionFailed; nothing is visible then, now or later.
        """

    def pass_damage(self) -> None:
        """From now on `poll` gives a `Lost` record in place of a batch that fails its checksum, and does not raise."""

    def close(self, timeout_s: float) -> None:
        """Leave the group and release the writer; no transaction stays open."""


def equal_partitions(counts: Mapping[str, int | None], where: str) -> int:
    """The one partition count of all topics, by name; None: the topic is missing. Raises Refused."""
    found = {count for count in counts.values() if count is not None}
    if not found:
        raise Refused(
            f"there is none of the topics {', '.join(counts)} {where}: make them with `mistakebound topics create`, "
            "or correct log.url or log.prefix"
        )
    if None in counts.values() or len(found) > 1:
        listed = ", ".join(f"{name} {count or 'is missing'}" for name, count in counts.items())
        raise Refused(
            f"the topics {where} need equal partition counts: {listed}; make the missing ones with `mistakebound topics "
            "create --set log.partitions=N`; a count cannot be changed under a prefix, take another log.prefix"
        )
    return found.pop()


class Log(Protocol):
    """A set of topics with equal partition counts, and one consumer group's positions."""

    @property
    def partitions(self) -> int:
        """Partition count P of every topic. Raises Refused when topics are missing or counts differ."""

    def describe(self) -> dict[Topic, TopicDescription | None]:
        """Each logical topic as it is now; None where it is missing."""

    def create_topics(self, partitions: int, config: Mapping[Topic, Mapping[str, str]]) -> list[str]:
        """Create the missing topics and return their names; existing ones are never altered."""

    def low_watermark(self, topic: Topic, partition: int) -> int:
        """Offset of the oldest record still kept."""

    def high_watermark(self, topic: Topic, partition: int) -> int:
        """Offset after the newest record, committed or not."""

    def stable_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offset of each, as the log says now: what lies above it belongs to open transactions, or waits
        for them to end. One round trip for all."""

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None = None, *, wait_s: float = 30.0
    ) -> Iterator[Record]:
        """Committed records with start <= offset < stop; `stop` None means the high watermark now.

        Raises OffsetLost when `start` lies below the low watermark or above the high watermark.
        """

    def follow(self, starts: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        """Yield batches of committed records from these offsets on, until closed; an empty batch every
        half second or so when there is nothing new (so that the caller can check the time)."""

    def append(self, records: Iterable[Outgoing]) -> int:
        """Write input records outside any transaction, as they come; returns how many. For `send` and `demo`.

        A negative partition means: by murmur2 of the key. Raises LogError, which says how many were
        `acknowledged`; all before a record that is refused are written.
        """

    def partition_count(self, topic: Topic) -> int:
        """Partitions of this one topic, of which the others need not be visible. Raises Refused where it is missing."""

    def other_readers(self) -> dict[str, frozenset[Topic]]:
        """Other groups with a worker's positions on inputs of this log, and on which, as far as they may be seen."""

    def group_positions(self) -> dict[int, Position | None]:
        """The group's committed positions, read without joining it."""

    def exclusively(self, decide: Callable[[], Sequence[Outgoing]]) -> int:
        """Fence all other callers, call `decide` (which reads the log), and write what it returns
        in one transaction. Returns how many records were written. Raises Fenced when another caller
        came in between: nothing was written, read again."""

    def try_transactions(self) -> str | None:
        """Begin, under a name that no worker has, what every step needs, and write nothing.

        Raises Refused where the log has no transactions. Returns why they could not be tried, or None.
        """

    def max_record_bytes(self, topic: Topic) -> int:
        """Largest value + key + headers that the topic is sure to take."""

    def join(self, slot: str) -> Session:
        """Join the group as `slot`; takes over a predecessor's slot and ends its open transaction."""

    def close(self) -> None:
        """Release connections and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
