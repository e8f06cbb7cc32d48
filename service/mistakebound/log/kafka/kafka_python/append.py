"""Input records, written outside any transaction: for `send` and `demo`."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from kafka.errors import (
    AuthorizationError,
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RetriableError,
)

from mistakebound.core.records import Outgoing
from mistakebound.log.kafka import limits
from mistakebound.log.kafka.kafka_python.connect import Connection
from mistakebound.log.kafka.kafka_python.errors import denied
from mistakebound.log.kafka.kafka_python.outgoing import discard, send
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import LogError, Unreachable

CHUNK = 10_000

TOO_LARGE = "shorten it, or raise the topic's `max.message.bytes` and `kafka.max_request_size`"
REMEDIES = {
    MessageSizeTooLargeError: TOO_LARGE,
    RecordListTooLargeError: TOO_LARGE,
    InvalidTimestampError: "correct its time, or set the topic's `message.timestamp.before.max.ms` and "
    "`message.timestamp.after.max.ms`",
}


class Appender:
    """One client for all appends. Not thread-safe."""

    def __init__(self, connection: Connection, names: Names, watchdog: Watchdog) -> None:
        self._connection = connection
        self._names = names
        self._watchdog = watchdog
        self._producer: Any = None

    def append(self, records: Iterable[Outgoing]) -> int:
        """Write all records, in order within each partition; returns how many.

        Raises LogError naming the record that was refused; records before it may have been written.
        """
        if self._producer is None:
            self._producer = self._connection.plain()
        rest, written = iter(records), 0
        try:
            while chunk := list(islice(rest, CHUNK)):
                with self._watchdog.limit(limits.STUCK_S, "append"):
                    self._write(chunk)
                written += len(chunk)
        except BaseException:
            self.close()
            raise
        return written

    def close(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _write(self, chunk: list[Outgoing]) -> None:
        futures = [self._asking(record, self._send, record) for record in chunk]
        try:
            self._producer.flush(limits.FLUSH_S)
        except KafkaError as error:
            raise Unreachable(f"append: the broker did not take the records in time ({error!r})") from error
        for record, future in zip(chunk, futures, strict=True):
            self._asking(record, future.get, 0)

    def _send(self, record: Outgoing) -> Any:
        return send(self._producer, self._names.to_broker[record.topic], record)

    def _asking(self, record: Outgoing, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (KafkaError, ValueError) as error:
            name = self._names.to_broker[record.topic]
            what = f"append to {name}, key {record.key!r}: {error!r}"
            if isinstance(error, AuthorizationError):
                raise denied(f"append to {name}", f"Write on topic {name}") from error
            if isinstance(error, RetriableError):
                raise Unreachable(
                    f"{what}; start the broker, or make the topic with `mistakebound topics create`"
                ) from error
            remedy = REMEDIES.get(type(error), "correct the record")
            raise LogError(f"{what}; {remedy}") from error
