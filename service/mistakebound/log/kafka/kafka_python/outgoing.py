"""How a record is handed to a producing client, and how such a client is thrown away."""

from typing import Any

from kafka import TopicPartition as BrokerPartition
from kafka.errors import KafkaError

from mistakebound.core.records import Outgoing

CLOSE_S = 2.0


def send(producer: Any, name: str, record: Outgoing) -> Any:
    """Hand one record over for the broker's topic `name`; returns its future."""
    value, key, headers = record.value, record.key, list(record.headers)
    if (value is None and key is None) or any(content is None for _, content in headers):
        return _send_with_nulls(producer, name, record, headers)
    partition = record.partition if record.partition >= 0 else None
    return producer.send(name, value, key, headers, partition, record.timestamp_ms)


class HeadersWithNulls(list[Any]):
    """Counts as empty: the client would add up the lengths in any other list, and fail at a null."""

    def __bool__(self) -> bool:
        return False


def _send_with_nulls(producer: Any, name: str, record: Outgoing, headers: list[Any]) -> Any:
    # What `producer.send` does after its checks, which refuse nulls that Kafka allows: a record without key
    # and value, or a header without value.
    producer.partitions_for(name)
    given = record.partition if record.partition >= 0 else None
    partition = producer._partition(name, given, record.key, record.value, record.key, record.value)
    broker_partition = BrokerPartition(name, partition)
    producer._ensure_valid_record_size(producer._estimate_size_in_bytes(record.key, record.value, headers))
    manager = producer._transaction_manager
    if manager.is_transactional():
        manager.maybe_add_partition_to_transaction(broker_partition)
    future, full, new, _ = producer._accumulator.append(
        broker_partition, record.timestamp_ms, record.key, record.value, HeadersWithNulls(headers)
    )
    if full or new:
        producer._sender.wakeup()
    return future


def discard(producer: Any) -> None:
    """Close a client whatever its state, within a few seconds; its unsent records are dropped."""
    producer._sender.force_close()
    producer._sender.join(CLOSE_S)
    try:
        producer.close(timeout=0)
    except KafkaError:
        # Unsent records cannot be flushed any more, and the client's clean-up at exit would try again.
        producer._unregister_cleanup()
        producer._closed = True
