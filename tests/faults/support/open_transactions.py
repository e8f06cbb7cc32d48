"""Whether transactions are open on a broker, and what is in them, as plain clients see it."""

from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, TopicPartition

from mistakebound.core.records import TOPICS
from tests.faults.support.deployment import PARTITIONS

READ_MS = 10_000


class Transactions:
    """Two readers of one prefix: one that sees committed records only, and one that sees all."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.places = [TopicPartition(prefix + topic, p) for topic in TOPICS for p in range(PARTITIONS)]
        self._stable, self._all = (
            KafkaConsumer(
                bootstrap_servers=bootstrap,
                isolation_level=isolation,
                auto_offset_reset="none",
                enable_auto_commit=False,
            )
            for isolation in ("read_committed", "read_uncommitted")
        )

    def open_below(self) -> dict[TopicPartition, tuple[int, int]]:
        """Partitions whose last stable offset is below their high watermark: a transaction is open there."""
        stable, high = self._stable.end_offsets(self.places), self._all.end_offsets(self.places)
        return {each: (stable[each], high[each]) for each in self.places if stable[each] < high[each]}

    def written(self, found: dict[TopicPartition, tuple[int, int]]) -> set[tuple[TopicPartition, int]]:
        """Places of the records that lie between these offsets, whatever becomes of them."""
        return self._between(self._all, found)

    def committed(self, found: dict[TopicPartition, tuple[int, int]]) -> set[tuple[TopicPartition, int]]:
        """Places of the committed records there. The transactions must have ended."""
        return self._between(self._stable, found)

    def _between(
        self, consumer: KafkaConsumer, found: dict[TopicPartition, tuple[int, int]]
    ) -> set[tuple[TopicPartition, int]]:
        seen = set()
        for place, (start, stop) in found.items():
            consumer.assign([place])
            consumer.seek(place, start)
            while consumer.position(place, timeout_ms=READ_MS) < stop:
                for record in consumer.poll(timeout_ms=100).get(place, ()):
                    if record.offset < stop:
                        seen.add((place, record.offset))
        return seen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer in (self._stable, self._all):
            consumer.close(autocommit=False)


def open_below(bootstrap: str, prefix: str) -> dict[TopicPartition, tuple[int, int]]:
    """`Transactions.open_below` once."""
    with Transactions(bootstrap, prefix) as transactions:
        return transactions.open_below()
