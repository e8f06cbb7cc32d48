"""Input records, written outside any transaction: for `send` and `demo`; and how a producer is thrown away."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import kafka.errors as kafka_errors
from kafka import TopicPartition as BrokerPartition

from mistakebound.core.records import Outgoing
from mistakebound.log.kafka import timeouts
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.errors import denied
from mistakebound.log.protocol import LogError, Unreachable

CHUNK = 10_000
CLOSE_S = 2.0

TOO_LARGE = "shorten it, or raise the topic's `max.message.bytes` and `kafka.max_request_size`"
REMEDIES = {
    kafka_errors.MessageSizeTooLargeError: TOO_LARGE,
    kafka_errors.RecordListTooLargeError: TOO_LARGE,
    kafka_errors.InvalidTimestampError: "correct its time, or set the topic's `message.timestamp.before.max.ms` and "
    "`message.timestamp.after.max.ms`",
}


class Appender:
    """One client for all appends. Not thread-safe."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer: Any = None

    def append(self, records: Iterable[Outgoing]) -> int:
        """Write all records, in order within each partition; returns how many.

        Each is handed over as it comes: the records of a slow iterable are seen soon. Raises LogError naming the
        record that was refused, with how many before it were acknowledged; later ones may have been written.
        """
        if self._producer is None:
            self._producer = self._cluster.connection.plain()
        written = 0
        handed_over: list[tuple[Outgoing, Any]] = []
        try:
            for record in records:
                try:
                    future = self._asking(record, _send, self._producer, self._named(record), record)
                except LogError as error:
                    error.acknowledged = self._settle(handed_over)
                    raise
                handed_over.append((record, future))
                if len(handed_over) == CHUNK:
                    written += self._settle(handed_over)
                    handed_over = []
            return written + self._settle(handed_over)
        except LogError as error:
            error.acknowledged += written
            self.close()
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _settle(self, handed_over: Sequence[tuple[Outgoing, Any]]) -> int:
        """Wait until the broker has acknowledged these; returns how many. Raises LogError at the first that it has not."""
        if not handed_over:
            return 0
        with self._cluster.watchdog.limit(timeouts.STUCK_S, "append"):
            try:
                self._producer.flush(timeouts.FLUSH_S)
            except kafka_errors.KafkaError as error:
                late = Unreachable(f"append: the broker did not take the records in time ({error!r})")
                late.acknowledged = sum(1 for _ in takewhile(_succeeded, handed_over))
                raise late from error
            for number, (record, future) in enumerate(handed_over):
                try:
                    self._asking(record, future.get, 0)
                except LogError as error:
                    error.acknowledged = number
                    raise
        return len(handed_over)

    def _named(self, record: Outgoing) -> str:
        return self._cluster.names.to_broker[record.topic]

    def _asking(self, record: Outgoing, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (kafka_errors.KafkaError, ValueError) as error:
            name = self._named(record)
            what = f"append to {name}, key {record.key!r}: {error!r}"
            if isinstance(error, kafka_errors.AuthorizationError):
                raise denied(f"append to {name}", f"Write on topic {name}") from error
            if isinstance(error, kafka_errors.RetriableError):
                raise Unreachable(
                    f"{what}; start the broker, or make the topic with `mistakebound topics create`"
                ) from error
            remedy = REMEDIES.get(type(error), "correct the record")
            raise LogError(f"{what}; {remedy}") from error


def _succeeded(handed_over: tuple[Outgoing, Any]) -> bool:
    return bool(handed_over[1].succeeded())


def _send(producer: Any, name: str, record: Outgoing) -> Any:
    """Hand one record over for the broker's topic `name`; returns its future."""
    value, key, headers = record.value, record.key, list(record.headers)
    given = record.partition if record.partition >= 0 else None
    if (value is not None or key is not None) and all(content is not None for _, content in headers):
        return producer.send(name, value, key, headers, given, record.timestamp_ms)
    # What `producer.send` does after its checks, which refuse nulls that Kafka allows: a record without key
    # and value, or a header without value.
    producer.partitions_for(name)
    at = BrokerPartition(name, producer._partition(name, given, key, value, key, value))
    producer._ensure_valid_record_size(producer._estimate_size_in_bytes(key, value, headers))
    if producer._transaction_manager.is_transactional():
        producer._transaction_manager.maybe_add_partition_to_transaction(at)
    future, full, new, _ = producer._accumulator.append(
        at, record.timestamp_ms, key, value, _HeadersWithNulls(headers)
    )
    if full or new:
        producer._sender.wakeup()
    return future


class _HeadersWithNulls(list[Any]):
    """Counts as empty: the client would add up the lengths in any other list, and fail at a null."""

    def __bool__(self) -> bool:
        return False


def discard(producer: Any) -> None:
    """Close a client whatever its state, within a few seconds; its unsent records are dropped."""
    producer._sender.force_close()
    producer._sender.join(CLOSE_S)
    try:
        producer.close(timeout=0)
    except kafka_errors.KafkaError:
        # Unsent records cannot be flushed any more, and the client's clean-up at exit would try again.
        producer._unregister_cleanup()
        producer._closed = True
