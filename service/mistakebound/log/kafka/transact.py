"""One transaction: all outputs and the group's positions, or nothing.

Guarantees:

1. A transaction is committed only after every one of its records was acknowledged. A record whose
   send failed may be in the log all the same, and a client that lost its epoch reports a commit that
   never happened; so a failed send never meets a commit, a commit counts only under the epoch that the
   transaction began with, and after either failure the client is thrown away.
2. Positions are sent with the group membership of the records' generation. A stale one is refused by
   the broker (`StaleGeneration`).
3. After every failure the next client takes the same id: the broker then ends what was open before it
   lets anything else happen. `settle` waits for that.

Not guaranteed: that a transaction of which `TransactionFailed` was raised is absent, when the broker
fell silent at its very commit. After `settle` the log tells.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    AuthorizationError,
    CommitFailedError,
    FencedInstanceIdError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)

from mistakebound.core.records import INPUTS, Outgoing, Topic
from mistakebound.log.kafka.batches import end_of, send
from mistakebound.log.kafka.connect import DELIVERY_MS, Connection, Names
from mistakebound.log.kafka.errors import translated
from mistakebound.log.kafka.outgoing import discard
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Fenced, LogError, StaleGeneration, TransactionFailed

FLUSH_S = DELIVERY_MS / 1000 + 2
OFFSETS_S = 10.0
COMMIT_S = 30.0
ABORT_S = 5.0
STUCK_S = 120.0

Ends = dict[tuple[Topic, int], int]
_FENCED = (ProducerFencedError, InvalidProducerEpochError, FencedInstanceIdError)


class Writer:
    """The transactions of one stable transactional id, one after another. Not thread-safe."""

    def __init__(
        self, connection: Connection, names: Names, transactional_id: str, watchdog: Watchdog
    ) -> None:
        self._connection = connection
        self._names = names
        self._id = transactional_id
        self._watchdog = watchdog
        self._producer: Any = None

    def settle(self) -> None:
        """Take over the id: earlier holders are fenced, and what was open under it has ended.

        Nothing happens while the client of this writer is in order. Raises Fenced, Unreachable, Refused.
        """
        if self._producer is not None:
            return
        doing = f"initialise transactions as {self._id}"
        producer = self._connection.transactional(self._id)
        try:
            right = f"Write on transactional id {self._id}"
            with self._watchdog.limit(STUCK_S, doing), translated(doing, right):
                producer.init_transactions()
        except LogError as error:
            discard(producer)
            if isinstance(error.__cause__, _FENCED):
                raise fenced_by(self._id, error.__cause__) from error
            raise
        self._producer = producer

    def write(
        self, outputs: Sequence[Outgoing], positions: Mapping[TopicPartition, Any], member: Any
    ) -> Ends:
        """Commit `outputs`, and `positions` on behalf of group `member`, in one transaction.

        Returns the offset after the last record of each partition written to.
        Raises StaleGeneration, Fenced, TransactionFailed; Refused where the broker does not allow it.
        """
        self.settle()
        done = False
        try:
            with self._watchdog.limit(STUCK_S, f"a transaction of {self._id}"):
                ends = self._transact(outputs, positions, member)
                done = True
                return ends
        except CommitFailedError as error:
            self._abort()
            raise StaleGeneration(
                "the group has moved on, the transaction was aborted; roll back and poll again"
            ) from error
        except _FENCED as error:
            raise fenced_by(self._id, error) from error
        except (KafkaError, OSError) as error:
            cause = self._cause(error)
            if isinstance(cause, _FENCED):
                raise fenced_by(self._id, cause) from error
            self._abort()
            if isinstance(cause, AuthorizationError):
                with translated(f"a transaction of {self._id}", *self._rights(cause)):
                    raise cause from error
            raise TransactionFailed(
                f"a transaction of {self._id} was given up ({cause!r}); rebuild from the log"
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
        self, outputs: Sequence[Outgoing], positions: Mapping[TopicPartition, Any], member: Any
    ) -> Ends:
        producer = self._producer
        manager = producer._transaction_manager
        epoch = manager.producer_id_and_epoch
        producer.begin_transaction()
        parts: dict[tuple[Topic, int], list[Outgoing]] = {}
        for each in outputs:
            parts.setdefault((each.topic, each.partition), []).append(each)
        sent = {side: send(producer, self._names.at(*side), records) for side, records in parts.items()}
        if sent:
            producer.flush(FLUSH_S)
        # `end_of` raises what the broker said; a batch that is not acknowledged is a failure, too.
        ends: Ends = {side: max(end_of(batch) for batch in batches) for side, batches in sent.items()}
        if positions:
            self._wait(manager.send_offsets_to_transaction(dict(positions), member), OFFSETS_S, "positions")
        self._wait(manager.begin_commit(), COMMIT_S, "the commit")
        if manager.producer_id_and_epoch != epoch:
            # A client that asks for a new epoch has its transaction aborted, and calls its commit done.
            raise KafkaError(f"the client went from {epoch} to {manager.producer_id_and_epoch} on its way")
        return ends

    def _wait(self, result: Any, seconds: float, what: str) -> None:
        # The public calls are these two lines without a limit: they wait for ever while the broker is away.
        self._producer._sender.wakeup()
        if not result.wait(timeout_ms=seconds * 1000):
            raise KafkaTimeoutError(f"{what} was not acknowledged within {seconds:g} s")

    def _abort(self) -> None:
        # The client is thrown away even when the broker confirms: kafka-python 3.0.12 keeps the positions of an
        # aborted transaction and sends them along with the next one's, perhaps for a partition of another owner.
        with suppress(KafkaError, OSError):
            self._wait(self._producer._transaction_manager.begin_abort(), ABORT_S, "the abort")

    def _cause(self, error: BaseException) -> BaseException:
        # Once the client is in error, its calls raise plain KafkaErrors that only mention the first one.
        last = self._producer._transaction_manager.last_error if self._producer is not None else None
        return last if isinstance(last, (*_FENCED, AuthorizationError)) else error

    def _rights(self, error: BaseException) -> list[str]:
        # The broker names the topics, and not what it asks for: outputs are written, inputs are read.
        named = {name for each in error.args for name in ([each] if isinstance(each, str) else each)}
        inputs = [self._names.to_broker[topic] for topic in INPUTS]
        return [
            f"{'Read' if name in inputs else 'Write'} on topic {name}"
            for name in sorted(named & set(self._names.to_logical))
        ] + [f"Write on transactional id {self._id}", f"Read on group {self._connection.group}"]


def fenced_by(transactional_id: str, error: object) -> Fenced:
    """Another process took the id."""
    return Fenced(
        f"another process took {transactional_id} ({error!r}); give each worker a `worker.slot` of its own"
    )
