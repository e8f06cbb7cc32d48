"""kafka-python as a `Sender`: the traps of version 3.0.12, and how each is kept out of a transaction."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import kafka.errors as kafka_errors
from kafka import OffsetAndMetadata

from mistakebound.core.records import INPUTS, Outgoing, Position, TopicPartition
from mistakebound.log.kafka.kafka_python.append import discard
from mistakebound.log.kafka.kafka_python.batches import end_of, send
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.errors import denied, missing_right, translated
from mistakebound.log.kafka.kafka_python.make_clients import broker_partition
from mistakebound.log.kafka.ports import Ends, fenced, given_up, moved_on
from mistakebound.log.protocol import LogError

_FENCED = (
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.FencedInstanceIdError,
)
_TRANSACTIONAL = frozenset({24, 25, 26, 28})
"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit. A batch that is sent again has a sequence number, by
which the broker knows it."""


class KafkaPythonSender:
    """One producer with a stable transactional id."""

    errors: ClassVar[tuple[type[Exception], ...]] = (kafka_errors.KafkaError, OSError)

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self._names = cluster.names
        self._id = transactional_id
        self._group = cluster.connection.group
        self._producer = cluster.connection.transactional(transactional_id)
        self._sent_again = False
        self._watch_connections()
        self._epoch: Any = None
        self._sent: dict[TopicPartition, list[Any]] = {}

    def initialise(self) -> None:
        doing = f"initialise transactions as {self._id}"
        with translated(doing, f"Write on transactional id {self._id}"):
            try:
                self._producer.init_transactions()
            except _FENCED as error:
                raise fenced(self._id, error) from error

    def begin(self) -> None:
        self._epoch = self._manager.producer_id_and_epoch
        self._sent = {}
        self._producer.begin_transaction()

    def send(self, topic_partition: TopicPartition, records: Sequence[Outgoing], timeout_s: float) -> None:  # noqa: ARG002
        self._sent[topic_partition] = send(
            self._producer, broker_partition(self._names, *topic_partition), records
        )

    def flush(self, timeout_s: float) -> Ends:
        self._producer.flush(timeout_s)
        # `end_of` raises what the broker said; a batch that is not acknowledged is a failure, too.
        return {each: max(end_of(batch) for batch in batches) for each, batches in self._sent.items()}

    def send_positions(self, positions: Mapping[int, Position], member: Any, timeout_s: float) -> None:
        offsets = {}
        for partition, position in positions.items():
            pairs = (position.examples, position.metadata), (position.labels, "")
            for topic, (offset, metadata) in zip(INPUTS, pairs, strict=True):
                at = broker_partition(self._names, topic, partition)
                offsets[at] = OffsetAndMetadata(offset, metadata, -1)
        self._wait(self._manager.send_offsets_to_transaction(offsets, member), timeout_s, "positions")

    def commit(self, timeout_s: float) -> None:
        """Returns only when the broker has committed this transaction, under the epoch that it began with."""
        self._wait(self._manager.begin_commit(), timeout_s, "the commit")
        if self._manager.producer_id_and_epoch != self._epoch:
            # A client that asks for a new epoch has its transaction aborted, and calls its commit done.
            raise kafka_errors.KafkaError(
                f"the client went from {self._epoch} to {self._manager.producer_id_and_epoch} on its way"
            )

    def abort(self, timeout_s: float) -> None:
        # kafka-python 3.0.12 keeps the positions of an aborted transaction and sends them along with the next
        # one's, perhaps for a partition of another owner: one reason more not to use the client again.
        with suppress(kafka_errors.KafkaError, OSError):
            self._wait(self._manager.begin_abort(), timeout_s, "the abort")

    def sent_again(self) -> bool:
        return self._sent_again

    def explain(self, error: Exception) -> LogError:
        if isinstance(error, kafka_errors.CommitFailedError):
            return moved_on()
        # Once the client is in error, its calls raise plain KafkaErrors that only mention the first one.
        first = self._manager.last_error
        cause = first if isinstance(first, (*_FENCED, kafka_errors.AuthorizationError)) else error
        if isinstance(error, _FENCED) or isinstance(cause, _FENCED):
            return fenced(self._id, error if isinstance(error, _FENCED) else cause)
        if isinstance(cause, kafka_errors.AuthorizationError):
            return denied(f"a transaction of {self._id}", missing_right(cause, self._rights(cause)))
        return given_up(self._id, repr(cause))

    def discard(self) -> None:
        discard(self._producer)

    @property
    def _manager(self) -> Any:
        return self._producer._transaction_manager

    def _watch_connections(self) -> None:
        # The client sends a request whose connection has ended again, and tells nobody. It asks its network client
        # to send each, and the future that it gets knows how that went.
        network = self._producer._sender._client
        send_request = network.send

        def note(error: Exception) -> None:
            self._sent_again |= isinstance(error, kafka_errors.KafkaConnectionError)

        def watched(node: Any, request: Any, **options: Any) -> Any:
            future = send_request(node, request, **options)
            if request.API_KEY in _TRANSACTIONAL:
                future.add_errback(note)
            return future

        network.send = watched

    def _wait(self, result: Any, seconds: float, what: str) -> None:
        # The public calls are these two lines without a limit: they wait forever while the broker is away.
        self._producer._sender.wakeup()
        if not result.wait(timeout_ms=seconds * 1000):
            raise kafka_errors.KafkaTimeoutError(f"{what} was not acknowledged within {seconds:g} s")

    def _rights(self, error: kafka_errors.AuthorizationError) -> list[str]:
        # The broker names the topics, and not what it asks for: outputs are written, inputs are read.
        named = {name for each in error.args for name in ([each] if isinstance(each, str) else each)}
        inputs = [self._names.to_broker[topic] for topic in INPUTS]
        return [
            f"{'Read' if name in inputs else 'Write'} on topic {name}"
            for name in sorted(named & set(self._names.to_logical))
        ] + [f"Write on transactional id {self._id}", f"Read on group {self._group}"]
