"""What the log asks of a Kafka client: fetch records from given offsets, and send one transaction.

Each client implements both: kafka-python in `kafka_python/`, librdkafka in `confluent/`. The rules above
them are in `read.py` and `write.py`, once. A port works on whole batches, never on one record.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from mistakebound.core.records import Outgoing, Position, Record, TopicPartition
from mistakebound.log.protocol import Fenced, LogError, StaleGeneration, TransactionFailed

Ends = dict[TopicPartition, int]
"""The offset after the last record written to each partition."""


class Fetcher(Protocol):
    """One consumer outside the group, which sees committed records only.

    Every method but `close` raises the log's own errors, which say first what was being done.
    """

    def start(self, starts: Mapping[TopicPartition, int], doing: str) -> None:
        """Fetch these partitions, and no others, from these offsets on. `doing` is for messages."""

    def fetch(self, timeout_s: float) -> Sequence[Record]:
        """What is there, waiting at most `timeout_s` for the first record."""

    def position(self) -> int:
        """The next offset of the one partition that `start` named, transaction markers counted."""

    def rest(self) -> None:
        """Fetch nothing more until the next `start`."""

    def close(self) -> None: ...


class Sender(Protocol):
    """One producer with a stable transactional id. After any failure it is of no use."""

    errors: ClassVar[tuple[type[Exception], ...]]
    """What the methods below raise for `explain` to put in the log's words."""

    def initialise(self) -> None:
        """Take over the id: earlier holders are fenced, and what was open under it has ended.

        Raises the log's own errors: Fenced, Unreachable, Refused.
        """

    def begin(self) -> None: ...

    def send(self, topic_partition: TopicPartition, records: Sequence[Outgoing], timeout_s: float) -> None:
        """Hand the records of one partition over, in order; once a transaction for each partition."""

    def flush(self, timeout_s: float) -> Ends:
        """Wait until the broker has acknowledged every record; raises unless it has acknowledged them all."""

    def send_positions(self, positions: Mapping[int, Position], member: Any, timeout_s: float) -> None:
        """Add the group's positions, on behalf of the membership `member`."""

    def commit(self, timeout_s: float) -> None:
        """Returns only when the broker has committed this transaction."""

    def abort(self, timeout_s: float) -> None:
        """Ask the broker to end the transaction now, not when it times out. Raises nothing."""

    def sent_again(self) -> bool:
        """Whether a request of a transaction was sent again, since its connection ended without the answer.

        The first copy may still arrive. The client must notice every such end of a connection; it may report
        one that did no harm.
        """

    def explain(self, error: Exception) -> LogError:
        """One of `errors` in the log's words; ask before `abort`, which may hide the first cause."""

    def discard(self) -> None:
        """Close the client whatever its state; its unsent records are dropped."""


def fenced(transactional_id: str, cause: object) -> Fenced:
    """Another process took the id."""
    return Fenced(
        f"another process took {transactional_id} ({cause!r}); give each worker a `worker.slot` of its own"
    )


def moved_on() -> StaleGeneration:
    """The broker refused the positions of an old generation."""
    return StaleGeneration("the group has moved on, the transaction was aborted; roll back and poll again")


def given_up(transactional_id: str, cause: str) -> TransactionFailed:
    """The transaction failed, or nobody knows how it ended."""
    return TransactionFailed(
        f"a transaction of {transactional_id} was given up ({cause}); rebuild from the log"
    )


def outlasted(transactional_id: str, took_s: float) -> TransactionFailed:
    """The broker no longer takes the transaction, after longer than it allows one to be open."""
    return given_up(transactional_id, f"the broker ended it: it took {took_s:.0f} s")
