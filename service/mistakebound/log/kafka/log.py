"""The log on Kafka: each call of the protocol, handed to the part that does it."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from mistakebound.core.records import Outgoing, Position, Record, Topic
from mistakebound.log.kafka.admin import Admin
from mistakebound.log.kafka.append import Appender
from mistakebound.log.kafka.connect import Connection, Names
from mistakebound.log.kafka.positions import fetch_positions
from mistakebound.log.kafka.read import Reader
from mistakebound.log.kafka.session import KafkaSession
from mistakebound.log.kafka.transact import Writer
from mistakebound.log.kafka.watchdog import Watchdog, leave
from mistakebound.log.protocol import Session, TopicDescription, TransactionFailed
from mistakebound.settings import Settings

ATTEMPTS = 3
OVERHEAD_BYTES = 512
"""Above what a batch and a record of 30 headers need besides key, value and headers."""


class KafkaLog:
    """Six topics on one cluster. Connects when made; one thread at a time."""

    def __init__(self, settings: Settings, bark: Callable[[str], None] = leave) -> None:
        """Raise Unreachable for a silent address, Refused for options that the log cannot take.

        `bark` is told which call to the broker never returned; by default it ends the process.
        """
        self._names = Names.of(settings)
        self._connection = Connection(settings)
        self._watchdog = Watchdog(bark)
        self._admin = Admin(self._connection, self._names, self._watchdog)
        self._reader = self._make_reader()
        self._appender = Appender(self._connection, self._names, self._watchdog)
        self._partitions: int | None = None
        self._observer: Any = None

    @property
    def partitions(self) -> int:
        """Partition count of every topic. Raises Refused when topics are missing or counts differ."""
        if self._partitions is None:
            self._partitions = self._admin.partitions()
        return self._partitions

    def describe(self) -> dict[Topic, TopicDescription | None]:
        """Each logical topic as it is now; None where it is missing."""
        return self._admin.describe()

    def create_topics(self, partitions: int, config: Mapping[Topic, Mapping[str, str]]) -> list[str]:
        """Create the missing topics and return their names; existing ones are never altered."""
        return self._admin.create_topics(partitions, config)

    def low_watermark(self, topic: Topic, partition: int) -> int:
        """Offset of the oldest record still kept."""
        return self._admin.low_watermark(topic, partition)

    def high_watermark(self, topic: Topic, partition: int) -> int:
        """Offset after the newest record, committed or not."""
        return self._admin.high_watermark(topic, partition)

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None = None, *, wait_s: float = 30.0
    ) -> Iterator[Record]:
        """Committed records with start <= offset < stop; `stop` None means the high watermark now."""
        records: Iterator[Record] = self._reader.read(topic, partition, start, stop, wait_s)
        return records

    def follow(self, starts: Mapping[tuple[Topic, int], int]) -> Generator[Sequence[Record]]:
        """Yield batches of committed records from these offsets on, until closed."""
        batches: Generator[Sequence[Record]] = self._reader.follow(starts)
        return batches

    def append(self, records: Iterable[Outgoing]) -> int:
        """Write input records outside any transaction; returns how many."""
        return self._appender.append(records)

    def group_positions(self) -> dict[int, Position | None]:
        """The group's committed positions, read without joining it."""
        partitions = range(self.partitions)
        return fetch_positions(self._observing(), self._names, partitions, self._watchdog)

    def exclusively(self, decide: Callable[[], Sequence[Outgoing]]) -> int:
        """Fence all other callers, call `decide`, and write what it returns in one transaction."""
        writer = self._make_writer(f"{self._connection.group}-epoch")
        try:
            for attempt in range(ATTEMPTS):
                writer.settle()
                outputs = decide()
                if not outputs:
                    break
                try:
                    writer.write(outputs, {}, None)
                except TransactionFailed:
                    # Perhaps it was committed all the same: fenced and read again, the log tells.
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    return len(outputs)
            return 0
        finally:
            writer.drop()

    def max_record_bytes(self, topic: Topic) -> int:
        """Largest value + key + headers that the topic is sure to take."""
        topic_bytes = self._admin.max_message_bytes(topic)
        return min(topic_bytes, self._connection.max_request_bytes) - OVERHEAD_BYTES

    def join(self, slot: str) -> Session:
        """Join the group as `slot`; takes over a predecessor's slot and ends its open transaction."""
        partitions = self._admin.partitions()
        writer = self._make_writer(self._connection.client_id(slot))
        writer.settle()
        try:
            self._admin.evict(self._connection.client_id(slot))
            return self._make_session(partitions, slot, writer)
        except BaseException:
            writer.drop()
            raise

    def close(self) -> None:
        """Release connections."""
        self._reader.close()
        if self._observer is not None:
            self._observer.close(autocommit=False)
        self._appender.close()
        self._admin.close()
        self._watchdog.close()

    # --- what another client does in its own way (`mistakebound.log.kafka.confluent`) --------------------

    def _make_reader(self) -> Any:
        return Reader(self._connection, self._names, self._admin, self._watchdog)

    def _make_writer(self, transactional_id: str) -> Any:
        return Writer(self._connection, self._names, transactional_id, self._watchdog)

    def _make_session(self, partitions: int, slot: str, writer: Any) -> Session:
        return KafkaSession(self._connection, self._names, partitions, slot, writer, self._watchdog)

    def _observing(self) -> Any:
        """A consumer that knows the group's positions and never joins it."""
        if self._observer is None:
            self._observer = self._connection.observer()
        return self._observer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
