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
4. A client that had to send a request of a transaction again is thrown away too, though the transaction
   was committed: the first copy of the request may arrive later, and the broker would take it for one of
   the next transaction, since all transactions of a client share one epoch. The next client raises the
   epoch, which refuses such a copy.
5. A fence says that another process took the id. The broker answers the same once it has ended a transaction
   that took longer than it allows; so what is refused after that time has failed, and nobody is blamed for it.

Not guaranteed: that a transaction of which `TransactionFailed` was raised is absent, when the broker
fell silent at its very commit. After `settle`, read the log to know.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mistakebound.core.records import Outgoing, Position, TopicPartition
from mistakebound.log.kafka import timeouts
from mistakebound.log.kafka.ports import Ends, Sender, outlasted
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Fenced, LogError


class Writer:
    """The transactions of one stable transactional id, one after another. Not thread-safe."""

    def __init__(
        self,
        make: Callable[[str], Sender],
        transactional_id: str,
        watchdog: Watchdog,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is monotonic, in s."""
        self._make = make
        self._clock = clock
        self._id = transactional_id
        self._watchdog = watchdog
        self._sender: Sender | None = None

    def settle(self) -> Sender:
        """Take over the id: earlier holders are fenced, and what was open under it has ended.

        Does nothing while the client of this writer is in order. Raises Fenced, Unreachable, Refused.
        """
        if self._sender is not None:
            return self._sender
        sender = self._make(self._id)
        try:
            with self._watchdog.limit(timeouts.STUCK_S, f"initialise transactions as {self._id}"):
                sender.initialise()
        except LogError:
            self._discard(sender)
            raise
        self._sender = sender
        return sender

    def write(self, outputs: Sequence[Outgoing], positions: Mapping[int, Position], member: Any) -> Ends:
        """Commit `outputs`, and `positions` on behalf of group `member`, in one transaction.

        Returns the offset after the last record of each partition written to.
        Raises StaleGeneration, Fenced, TransactionFailed; Refused where the broker does not allow it.
        """
        sender = self.settle()
        sound = False
        began_s = self._clock()
        try:
            with self._watchdog.limit(timeouts.STUCK_S, f"a transaction of {self._id}"):
                ends = _transact(sender, outputs, positions, member)
                sound = not sender.sent_again()
                return ends
        except sender.errors as error:
            failure = sender.explain(error)
            if not isinstance(failure, Fenced):
                with self._watchdog.limit(timeouts.STUCK_S, f"abort a transaction of {self._id}"):
                    sender.abort(timeouts.ABORT_S)
            elif (took_s := self._clock() - began_s) >= timeouts.TRANSACTION_MS / 1000:
                failure = outlasted(self._id, took_s)
            raise failure from error
        finally:
            if not sound:
                self.drop()

    def drop(self) -> None:
        """Throw the client away; the next transaction, or `settle`, makes another."""
        sender, self._sender = self._sender, None
        if sender is not None:
            self._discard(sender)

    def _discard(self, sender: Sender) -> None:
        with self._watchdog.limit(timeouts.STUCK_S, f"close the client of {self._id}"):
            sender.discard()


def _transact(
    sender: Sender, outputs: Sequence[Outgoing], positions: Mapping[int, Position], member: Any
) -> Ends:
    parts: dict[TopicPartition, list[Outgoing]] = {}
    for each in outputs:
        parts.setdefault((each.topic, each.partition), []).append(each)
    sender.begin()
    for topic_partition, records in parts.items():
        sender.send(topic_partition, records, timeouts.FLUSH_S)
    ends = sender.flush(timeouts.FLUSH_S) if parts else {}
    if positions:
        sender.send_positions(positions, member, timeouts.OFFSETS_S)
    sender.commit(timeouts.COMMIT_S)
    return ends
