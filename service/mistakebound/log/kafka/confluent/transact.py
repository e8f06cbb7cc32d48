"""One transaction by way of librdkafka: all outputs and the group's positions, or nothing.

The guarantees are those of `mistakebound.log.kafka.transact`. librdkafka keeps its own books: a record that
failed for good makes its transaction one that can only be aborted, and a commit is reported done only
if it was. Every error here still ends in an abort, or in a client that is thrown away.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from mistakebound.core.records import Outgoing, Topic
from mistakebound.log.kafka.confluent.clients import Clients
from mistakebound.log.kafka.confluent.errors import FENCED, STALE, cause_of, in_our_words
from mistakebound.log.kafka.connect import Names
from mistakebound.log.kafka.transact import ABORT_S, COMMIT_S, FLUSH_S, OFFSETS_S, STUCK_S, Ends, fenced_by
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import StaleGeneration, TransactionFailed

INIT_S = 30.0
FULL_S = 0.1
LATE_S = 2.0
"""So long beyond their limit positions may be under way before nobody waits for them any more."""


class Writer:
    """The transactions of one stable transactional id, one after another. Not thread-safe."""

    def __init__(self, clients: Clients, names: Names, transactional_id: str, watchdog: Watchdog) -> None:
        self._clients = clients
        self._names = names
        self._id = transactional_id
        self._watchdog = watchdog
        self._producer: Producer | None = None
        self._fatal: KafkaError | None = None

    def settle(self) -> None:
        """Take over the id: earlier holders are fenced, and what was open under it has ended.

        Nothing happens while the client of this writer is in order. Raises Fenced, Unreachable, Refused.
        """
        if self._producer is not None:
            return
        doing = f"initialise transactions as {self._id}"
        self._fatal = None
        producer = self._clients.transactional(self._id, self._note)
        try:
            with self._watchdog.limit(STUCK_S, doing):
                producer.init_transactions(INIT_S)
        except KafkaException as error:
            discard(producer)
            cause = self._cause(error)
            if cause.code() in FENCED:
                raise fenced_by(self._id, cause) from error
            raise in_our_words(doing, cause) from error
        self._producer = producer

    def write(
        self, outputs: Sequence[Outgoing], positions: Mapping[tuple[str, int], tuple[int, str]], member: Any
    ) -> Ends:
        """Commit `outputs`, and `positions` on behalf of group `member`, in one transaction.

        Returns the offset after the last record of each partition written to.
        Raises StaleGeneration, Fenced, TransactionFailed.
        """
        self.settle()
        done = False
        try:
            with self._watchdog.limit(STUCK_S, f"a transaction of {self._id}"):
                ends = self._transact(outputs, positions, member)
                done = True
                return ends
        except KafkaException as error:
            cause = self._cause(error)
            if cause.code() in FENCED:
                raise fenced_by(self._id, cause) from error
            done = self._abort()
            if cause.code() in STALE:
                raise StaleGeneration(
                    "the group has moved on, the transaction was aborted; roll back and poll again"
                ) from error
            done = False
            raise TransactionFailed(
                f"a transaction of {self._id} was given up ({cause}); rebuild from the log"
            ) from error
        finally:
            if not done:
                self.drop()

    def drop(self) -> None:
        """Throw the client away; the next transaction, or `settle`, makes another."""
        producer, self._producer = self._producer, None
        if producer is not None:
            discard(producer)

    def _transact(
        self, outputs: Sequence[Outgoing], positions: Mapping[tuple[str, int], tuple[int, str]], member: Any
    ) -> Ends:
        producer = self._producer
        assert producer is not None
        producer.begin_transaction()
        ends: Ends = {}

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                topic = self._names.to_logical[message.topic()]
                side = topic, message.partition()
                ends[side] = max(ends.get(side, 0), message.offset() + 1)

        # Records of a partition arrive in order, or the transaction cannot be committed: its last one tells.
        last: dict[tuple[Topic, int], int] = {
            (each.topic, each.partition): n for n, each in enumerate(outputs)
        }
        for number, each in enumerate(outputs):
            self._produce(each, delivered if last[each.topic, each.partition] == number else None)
        if outputs and (left := producer.flush(FLUSH_S)):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{left} records were not acknowledged"))
        if len(ends) < len(last):
            raise KafkaException(KafkaError(KafkaError._FAIL, "a record was not acknowledged"))
        if positions:
            offsets = [
                TopicPartition(name, partition, offset, metadata)
                if metadata
                else TopicPartition(name, partition, offset)
                for (name, partition), (offset, metadata) in positions.items()
            ]
            self._send_positions(offsets, member)
        producer.commit_transaction(COMMIT_S)
        return ends

    def _send_positions(self, offsets: list[TopicPartition], member: Any) -> None:
        """Raises TransactionFailed where the call does not end: asked for anything else, the client would only say
        that it is busy.

        The call goes on in its thread then, and keeps its client from being closed until the process ends.
        """
        producer = self._producer
        assert producer is not None
        call: Future[None] = Future()

        def send() -> None:
            try:
                producer.send_offsets_to_transaction(offsets, member, OFFSETS_S)
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was wanted
                call.set_exception(error)
            else:
                call.set_result(None)

        # librdkafka 2.16 forgets the limit when the group's coordinator goes away (its issue 5456).
        Thread(target=send, name="positions", daemon=True).start()
        if wait([call], OFFSETS_S + LATE_S).not_done:
            raise TransactionFailed(
                f"a transaction of {self._id} was given up (sending the positions does not end, though limited to "
                f"{OFFSETS_S:g} s); rebuild from the log"
            )
        call.result()

    def _produce(self, record: Outgoing, told: Any) -> None:
        producer, end = self._producer, time.monotonic() + FLUSH_S
        assert producer is not None
        name = self._names.to_broker[record.topic]
        while True:
            try:
                producer.produce(
                    name,
                    record.value,
                    record.key,
                    partition=record.partition,
                    on_delivery=told,
                    timestamp=record.timestamp_ms or 0,
                    headers=list(record.headers),
                )
                return
            except BufferError:
                if time.monotonic() > end:
                    raise KafkaException(
                        KafkaError(KafkaError._QUEUE_FULL, f"the broker takes nothing for {FLUSH_S:g} s")
                    ) from None
                producer.poll(FULL_S)

    def _abort(self) -> bool:
        """Whether the broker confirmed the abort, and the client can go on."""
        assert self._producer is not None
        try:
            self._producer.abort_transaction(ABORT_S)
        except KafkaException:
            return False
        return True

    def _note(self, error: KafkaError) -> None:
        # Once the client is in a fatal error its calls only say so; the first one was told here.
        if error.fatal() and self._fatal is None:
            self._fatal = error

    def _cause(self, error: KafkaException) -> KafkaError:
        return self._fatal if self._fatal is not None else cause_of(error)


def discard(producer: Producer) -> None:
    """Close a client whatever its state; its unsent records are dropped."""
    producer.purge()
    with suppress(KafkaException):  # after a fatal error it says so again
        producer.flush(0)
