"""Steps and their transactions, one after another; each step but the first is made during another's commit.

A step's transaction begins after that of the step before it is committed. If the group has moved on, the step
is taken back, and first the one that was made ahead of it. Nothing observes a step before it is committed.
"""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import NamedTuple

from mistakebound.core.records import TopicPartition
from mistakebound.core.step.step import Step, step
from mistakebound.log.protocol import Fenced, Receipt, Session, StaleGeneration
from mistakebound.worker import events
from mistakebound.worker.assignment import WorkerState
from mistakebound.worker.input_buffer import InputBuffer

CHAIN = 16
"""Most steps in one chain. No other is made during the commit of the last one."""


class _Made(NamedTuple):
    step: Step
    began_s: float
    """On the monotonic clock."""


class Stepping:
    """One session's steps. The session is used by one thread at a time: this one's, or that of the commits."""

    def __init__(
        self,
        session: Session,
        buffer: InputBuffer,
        commits: Executor,
        max_records: int,
        observers: events.Observer,
        explain: Callable[[], int],
        stopping: Callable[[bool], bool],
    ) -> None:
        """`commits` has one thread, which ends before the session is closed. `max_records` is a step's limit;
        `explain` and `stopping` are those of `Worker`.
        """
        self._session, self._buffer, self._commits, self._most = session, buffer, commits, max_records
        self._observers, self._explain, self._stopping = observers, explain, stopping

    def chain(self, held: WorkerState, longest: int) -> int:
        """Make steps while there is something to take, at most `longest`; returns how many were committed.

        Afterwards nothing is held that is not committed: when the group moves on, what was made is taken
        back. After Fenced, TransactionFailed and Unreachable what is held is of no use.
        """
        made = self._step(held, self._buffer.drained())
        steps = 0
        while made is not None:
            self._observers.observe(events.TransactionOpened())
            opened_s = time.monotonic()
            sent = self._commits.submit(self._session.commit, made.step.transaction, self._buffer.generation)
            ahead = self._step_ahead(held) if steps + 1 < longest else None
            try:
                receipt = self._wait_for_end(sent, opened_s)
            except StaleGeneration:
                self._take_back(held, ahead)
                self._take_back(held, made)
                self._buffer.drop()
                self._observers.observe(events.Rebuilding("stale"))
                break
            self._keep(held, made, receipt)
            steps += 1
            made = ahead
            if made is not None and self._buffer.merge.ready() < self._most and not self._buffer.fill(0.0):
                self._take_back(held, made)
                break
        return steps

    def _step(self, held: WorkerState, drained: Collection[TopicPartition]) -> _Made | None:
        began_s = time.monotonic()
        made = step(held.state, self._buffer.merge, drained, self._most, self._explain())
        return None if made is None else _Made(made, began_s)

    def _step_ahead(self, held: WorkerState) -> _Made | None:
        """Only a full step, for which the session need not be asked whether anything is drained."""
        if self._buffer.merge.ready() < self._most or self._stopping(False):
            return None
        return self._step(held, ())

    def _take_back(self, held: WorkerState, made: _Made | None) -> None:
        if made is not None:
            held.state.rollback(made.step.partitions)

    def _wait_for_end(self, sent: Future[Receipt], opened_s: float) -> Receipt:
        """What the commit returns or raises; the log has its own limit for that."""
        result: events.TransactionResult = "failed"
        try:
            receipt = sent.result()
            result = "committed"
            return receipt
        except (StaleGeneration, Fenced) as error:
            result = "fenced" if isinstance(error, Fenced) else "stale"
            raise
        finally:
            self._observers.observe(events.TransactionEnded(result, time.monotonic() - opened_s))

    def _keep(self, held: WorkerState, made: _Made, receipt: Receipt) -> None:
        """The step is committed: it counts from now on."""
        done = made.step
        held.state.committed(receipt.ends)
        held.positions.update(done.transaction.positions)
        for (topic, partition), end in receipt.ends.items():
            if topic == "updates":
                held.fold.next_offsets[partition] = end
        self._observers.observe(
            events.StepCommitted(done.facts, done.totals, time.monotonic() - made.began_s, time.time())
        )
