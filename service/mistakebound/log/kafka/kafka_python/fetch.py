"""kafka-python as a `Fetcher` (`ports.py` says what each method promises)."""

from collections.abc import Mapping, Sequence
from typing import Any

from mistakebound.core.records import Record, TopicPartition
from mistakebound.log.kafka.kafka_python.batches import deliver_records
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.errors import translated
from mistakebound.log.kafka.kafka_python.make_clients import broker_partition

MAX_RECORDS = 4_000
POSITION_MS = 1_000


class KafkaPythonFetcher:
    """One consumer without a group."""

    def __init__(self, cluster: Cluster) -> None:
        self._names = cluster.names
        self._consumer = deliver_records(cluster.connection.reader(), self._names.to_logical)
        self._doing = self._right = ""
        self._assigned: list[Any] = []

    def start(self, starts: Mapping[TopicPartition, int], doing: str) -> None:
        self._doing = doing
        topics = sorted({self._names.to_broker[topic] for topic, _ in starts})
        self._right = f"Read on topic {', '.join(topics)}"
        self._assigned = [broker_partition(self._names, *each) for each in starts]
        with translated(doing, self._right):
            self._consumer.assign(self._assigned)
            for each, offset in zip(self._assigned, starts.values(), strict=True):
                self._consumer.seek(each, offset)

    def fetch(self, timeout_s: float) -> Sequence[Record]:
        with translated(self._doing, self._right):
            found = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=MAX_RECORDS)
        return [record for batch in found.values() for record in batch]

    def position(self) -> int:
        with translated(self._doing, self._right):
            return int(self._consumer.position(*self._assigned, timeout_ms=POSITION_MS))

    def rest(self) -> None:
        """Nothing: the client fetches only while it is polled."""

    def close(self) -> None:
        self._consumer.close(autocommit=False)
