"""The log on Kafka: each call of `mistakebound.log.protocol.Log`, handed to the part that does it."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol
from uuid import uuid4

from mistakebound.core.records import Outgoing, Position, Record, Topic, TopicPartition
from mistakebound.log.kafka import trial
from mistakebound.log.kafka.kafka_python.append import Appender
from mistakebound.log.kafka.kafka_python.client import KafkaPythonClient
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.ports import Fetcher, Sender
from mistakebound.log.kafka.read import Reader
from mistakebound.log.kafka.watchdog import leave
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Log, LogError, Refused, Session, TopicDescription, TransactionFailed
from mistakebound.settings import Settings

ATTEMPTS = 3
OVERHEAD_BYTES = 512
"""More than a batch, and a record with 30 headers, takes beside its key, value and headers."""


class Client(Protocol):
    """Kafka by way of one library: all that grows with the stream."""

    def fetcher(self, *, follows: bool) -> Fetcher:
        """`follows`: it will wait at the end of what is there; others have done with what is there."""

    def sender(self, transactional_id: str) -> Sender: ...

    def session(self, partitions: int, slot: str, writer: Writer) -> Session: ...


class KafkaLog(Log):
    """All topics of one prefix on one cluster. Connects when made; one thread at a time."""

    def __init__(
        self,
        settings: Settings,
        client: Callable[[Cluster], Client] = KafkaPythonClient,
        bark: Callable[[str], None] = leave,
    ) -> None:
        """Raise Unreachable for a silent address, Refused for options that the log cannot take.

        `bark` is told which call to the broker never returned; by default it ends the process.
        """
        self._cluster = Cluster(settings, bark)
        self._client = client(self._cluster)
        self._reader = Reader(self._client.fetcher, self._cluster.names, self, self._cluster.watchdog)
        self._appender = Appender(self._cluster)

    @cached_property
    def partitions(self) -> int:
        return self._cluster.admin.partitions()

    def describe(self) -> dict[Topic, TopicDescription | None]:
        return self._cluster.admin.describe()

    def create_topics(self, partitions: int, config: Mapping[Topic, Mapping[str, str]]) -> list[str]:
        return self._cluster.admin.create_topics(partitions, config)

    def low_watermark(self, topic: Topic, partition: int) -> int:
        return self._cluster.admin.low_watermark(topic, partition)

    def high_watermark(self, topic: Topic, partition: int) -> int:
        return self._cluster.admin.high_watermark(topic, partition)

    def stable_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._cluster.stable_ends(list(topic_partitions))

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None = None, *, wait_s: float = 30.0
    ) -> Iterator[Record]:
        return self._reader.read(topic, partition, start, stop, wait_s)

    def follow(self, starts: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        return self._reader.follow(starts)

    def append(self, records: Iterable[Outgoing]) -> int:
        return self._appender.append(records)

    def partition_count(self, topic: Topic) -> int:
        return self._cluster.admin.partition_count(topic)

    def other_readers(self) -> dict[str, frozenset[Topic]]:
        return self._cluster.admin.other_readers()

    def group_positions(self) -> dict[int, Position | None]:
        return self._cluster.positions(range(self.partitions))

    def exclusively(self, decide: Callable[[], Sequence[Outgoing]]) -> int:
        writer = self._writer(f"{self._cluster.connection.group}-epoch")
        try:
            for attempt in range(ATTEMPTS):
                writer.settle()
                outputs = decide()
                if not outputs:
                    break
                try:
                    writer.write(outputs, {}, None)
                except TransactionFailed:
                    # It may have been committed all the same: once earlier holders are fenced, `decide` reads it in the log.
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    return len(outputs)
            return 0
        finally:
            writer.drop()

    def try_transactions(self) -> str | None:
        if (missing := trial.lacking(self._cluster.admin.offered())) is not None:
            raise Refused(missing)
        # Nobody else has this id, so no worker is fenced; and it is covered by a worker's rights.
        own = f"{self._cluster.connection.group}-config-check-{uuid4().hex[:8]}"
        writer = self._writer(own)
        try:
            # librdkafka would ask again and again, and not say what the broker answered.
            self._cluster.admin.find_coordinator(own)
            writer.settle()
        except Refused as error:  # not allowed, which says nothing about the broker
            return str(error)
        except LogError as error:
            raise Refused(trial.failed(error)) from error
        finally:
            writer.drop()
        return None

    def max_record_bytes(self, topic: Topic) -> int:
        topic_bytes = self._cluster.admin.max_message_bytes(topic)
        return min(topic_bytes, self._cluster.connection.max_request_bytes) - OVERHEAD_BYTES

    def join(self, slot: str) -> Session:
        partitions = self._cluster.admin.partitions()
        client_id = self._cluster.connection.client_id(slot)
        writer = self._writer(client_id)
        writer.settle()
        try:
            self._cluster.admin.evict(client_id)
            return self._client.session(partitions, slot, writer)
        except BaseException:
            writer.drop()
            raise

    def close(self) -> None:
        self._reader.close()
        self._appender.close()
        self._cluster.close()

    def _writer(self, transactional_id: str) -> Writer:
        return Writer(self._client.sender, transactional_id, self._cluster.watchdog)
