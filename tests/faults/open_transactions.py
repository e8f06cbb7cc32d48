"""Whether transactions are open on a broker, as a plain client sees it."""

from kafka import KafkaConsumer, TopicPartition

from service.core.records import TOPICS
from tests.faults.deployment import PARTITIONS


def open_below(bootstrap: str, prefix: str) -> dict[TopicPartition, tuple[int, int]]:
    """Partitions whose last stable offset is below their high watermark: a transaction is open there."""
    places = [TopicPartition(prefix + topic, p) for topic in TOPICS for p in range(PARTITIONS)]
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
        try:
            ends.append(consumer.end_offsets(places))
        finally:
            consumer.close(autocommit=False)
    stable, high = ends
    return {each: (stable[each], high[each]) for each in places if stable[each] != high[each]}
