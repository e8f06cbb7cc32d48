"""librdkafka as a `Sender`.

It keeps its own books: a record that failed for good makes its transaction one that can only be aborted, and
a commit is reported done only if it was.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as PartitionOffset

from mistakebound.core.records import INPUTS, Outgoing, Position, TopicPartition
from mistakebound.log.kafka.confluent.errors import FENCED, STALE, Errors, cause_of, in_our_words
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.ports import Ends, fenced, given_up, moved_on
from mistakebound.log.protocol import LogError

CONNECT_S = 1.0
INIT_S = 30.0
FULL_S = 0.1
LATE_S = 2.0
"""How long past its limit a call that sends positions is still waited for."""


class Connections:
    """Reads in librdkafka's log whether a connection ended on which a request may have been unanswered.

    Its callback for errors is not told: the client connects again and sends the request again by itself.
    """

    def __init__(self) -> None:
        self.ended = False

    def log(self, level: int, form: str, *parts: object) -> None:  # noqa: ARG002 - as a logger is called
        """One line. It names its facility first: REQTMOUT, or FAIL and the state in which the connection was."""
        line = form % parts
        if "REQTMOUT" in line or ("FAIL" in line and " in state CONNECT" not in line):
            self.ended = True


@contextmanager
def own_error() -> Iterator[None]:
    """Raise what librdkafka says of a fatal error, where Python has made a SystemError of it.

    The client sets its own error as soon as it hears of the fatal one and goes on calling, with that error set:
    Python then takes the callback that returns for broken.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


class ConfluentSender:
    """One producer with a stable transactional id."""

    errors: ClassVar[tuple[type[Exception], ...]] = (KafkaException,)

    def __init__(
        self, make: Callable[[Errors, "Connections"], Producer], names: Names, transactional_id: str
    ) -> None:
        """`make` makes the producer, with a listener for errors and one for the lines of its own log."""
        self._names = names
        self._id = transactional_id
        self._fatal: KafkaError | None = None
        self._sent: list[TopicPartition] = []
        self._ends: Ends = {}
        self._connections = Connections()
        self._producer: Any = make(self._note, self._connections)

    def initialise(self) -> None:
        self._connect()
        try:
            with own_error():
                self._producer.init_transactions(INIT_S)
        except KafkaException as error:
            cause = self._cause(error)
            if cause.code() in FENCED:
                raise fenced(self._id, cause) from error
            raise in_our_words(f"initialise transactions as {self._id}", cause) from error

    def begin(self) -> None:
        self._sent, self._ends = [], {}
        self._producer.begin_transaction()

    def send(self, topic_partition: TopicPartition, records: Sequence[Outgoing], timeout_s: float) -> None:
        """Hand the records of one partition over, in order, for `timeout_s` while the client's queue is full."""
        self._sent.append(topic_partition)
        ends = self._ends

        def delivered(error: KafkaError | None, message: Any) -> None:
            # A function, not a method: once another process has the id, librdkafka calls this with its own error
            # already set, and Python would turn the call of a method into a SystemError.
            if error is None:
                ends[topic_partition] = message.offset() + 1

        name, last = self._names.to_broker[topic_partition[0]], len(records) - 1
        # Records of a partition arrive in order, or the transaction cannot be committed: the last one speaks for all.
        for index, record in enumerate(records):
            self._produce(name, record, timeout_s, delivered if index == last else None)

    def flush(self, timeout_s: float) -> Ends:
        with own_error():
            left = self._producer.flush(timeout_s)
        if left:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{left} records were not acknowledged"))
        if len(self._ends) < len(self._sent):
            raise KafkaException(KafkaError(KafkaError._FAIL, "a record was not acknowledged"))
        return self._ends

    def send_positions(self, positions: Mapping[int, Position], member: Any, timeout_s: float) -> None:
        """Add the group's positions. Raises TransactionFailed where the call does not end: asked for anything
        else, an abort included, the client would only say that it is busy.

        The call goes on in its thread then, and keeps its client from being closed until the process ends.
        """
        offsets = []
        of_examples, of_labels = (self._names.to_broker[topic] for topic in INPUTS)
        for partition, (examples, labels, metadata) in positions.items():
            # librdkafka tells no metadata from empty metadata; to the group both are the same.
            known = (metadata,) if metadata else ()
            offsets.append(PartitionOffset(of_examples, partition, examples, *known))
            offsets.append(PartitionOffset(of_labels, partition, labels))
        producer = self._producer
        call: Future[None] = Future()

        def send() -> None:
            try:
                producer.send_offsets_to_transaction(offsets, member, timeout_s)
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was wanted
                call.set_exception(error)
            else:
                call.set_result(None)

        # librdkafka 2.16 forgets the limit when the group's coordinator goes away (its issue 5456).
        Thread(target=send, name="positions", daemon=True).start()
        if wait([call], timeout_s + LATE_S).not_done:
            raise given_up(self._id, f"sending the positions does not end, though limited to {timeout_s:g} s")
        call.result()

    def commit(self, timeout_s: float) -> None:
        with own_error():
            self._producer.commit_transaction(timeout_s)

    def abort(self, timeout_s: float) -> None:
        with suppress(KafkaException), own_error():
            self._producer.abort_transaction(timeout_s)

    def sent_again(self) -> bool:
        with own_error():
            self._producer.poll(0)  # delivers the log's lines
        return self._connections.ended

    def explain(self, error: Exception) -> LogError:
        assert isinstance(error, KafkaException)
        cause = self._cause(error)
        if cause.code() in FENCED:
            return fenced(self._id, cause)
        if cause.code() in STALE:
            return moved_on()
        return given_up(self._id, str(cause))

    def discard(self) -> None:
        self._producer.purge()
        with suppress(KafkaException), own_error():  # after a fatal error it says so again
            self._producer.flush(0)
        # It holds us by its callback: its threads would live until a garbage collection.
        self._producer = None

    def _connect(self) -> None:
        """Have the client connected to a broker before it looks for its coordinator.

        With the first answer librdkafka 2.16 leaves the broker whose address it was given for those that it heard of. A search
        that comes between goes on after half a second: so it did in half of all starts. Where nobody answers, the search says so.
        """
        predictions = self._names.to_broker["predictions"]
        with suppress(KafkaException):
            for _ in range(2):
                self._producer.list_topics(predictions, CONNECT_S)

    def _produce(self, name: str, record: Outgoing, timeout_s: float, delivered: Any) -> None:
        deadline = 0.0
        while True:
            try:
                if record.headers or record.timestamp_ms is not None:
                    self._producer.produce(
                        name,
                        record.value,
                        record.key,
                        partition=record.partition,
                        on_delivery=delivered,
                        timestamp=record.timestamp_ms or 0,
                        headers=list(record.headers),
                    )
                else:  # By position, and only what is there: half the time, 0.6 us of 1.3.
                    self._producer.produce(name, record.value, record.key, record.partition, delivered)
                return
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + timeout_s
                if now > deadline:
                    raise KafkaException(
                        KafkaError(KafkaError._QUEUE_FULL, f"the broker takes nothing for {timeout_s:g} s")
                    ) from None
                with own_error():
                    self._producer.poll(FULL_S)

    def _note(self, error: KafkaError) -> None:
        # After a fatal error every call only says that there was one; this is the first.
        if error.fatal() and self._fatal is None:
            self._fatal = error

    def _cause(self, error: KafkaException) -> KafkaError:
        return self._fatal if self._fatal is not None else cause_of(error)
