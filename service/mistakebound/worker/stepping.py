"""Steps and their transactions, one after another; while one step is committed, the next is made.

A step's transaction begins after the previous step's is committed. If the group has moved on, the step is
taken back, and before it the step that was made ahead. No observer sees a step before it is committed.
"""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import NamedTuple

from mistakebound.core.records import TopicPartition
from mistakebound.core.step.step import Step, step
from mistakebound.log.protocol import Fenced, Receipt, Session, StaleGeneration, TransactionFailed
from mistakebound.worker import events
from mistakebound.worker.input_buffer import InputBuffer
from mistakebound.worker.step_limit import StepLimit
from mistakebound.worker.takeover import WorkerState

CHAIN = 16
"""Most steps in one chain. During the commit of its last step no other is made."""
AHEAD = 4
"""No step is made ahead before a quarter of what it may take is buffered. Steps made ahead, and of 16,000 records instead
of 4,000, take 0.87 of the processor's time of a backlog on kafka-python, at 1.17 times the rate."""


class _Made(NamedTuple):
    step: Step
    began_s: float
    """On the monotonic clock."""


class Stepping:
    """One session's steps. One thread at a time uses the session: the loop's, or the one that commits."""

    def __init__(
        self,
        session: Session,
        buffer: InputBuffer,
        commits: Executor,
        limit: StepLimit,
        observe: events.Observe,
        explain: Callable[[], int],
        stopping: Callable[[bool], bool],
        complete: Callable[[], bool] = lambda: True,
    ) -> None:
        """`commits` has one thread, which ends before the session is closed. `limit` hears of every step;
        `explain` and `stopping` are those of `Worker`. `complete()` says whether all that buffered records need is there;
        no step is made before.
        """
        self._complete = complete
        self._session, self._buffer, self._commits = session, buffer, commits
        self._limit = limit
        self._observe, self._explain, self._stopping = observe, explain, stopping

    def chain(self, held: WorkerState, longest: int) -> int:
        """Make at most `longest` steps while there is input; return how many were committed.

        A step is as large as what is buffered, up to the limit.

        Afterwards everything in `held` is committed: when the group moves on, steps that were made are taken
        back. After Fenced, TransactionFailed and Unreachable, `held` must be thrown away.
        """
        made = self._step(held, self._buffer.drained())
        steps = 0
        while made is not None:
            self._observe(events.TransactionOpened())
            opened_s = time.monotonic()
            sent = self._commits.submit(self._session.commit, made.step.transaction, self._buffer.generation)
            ahead = self._step_ahead(held) if steps + 1 < longest else None
            try:
                receipt = self._wait_for_end(sent, opened_s)
            except TransactionFailed:
                self._limit.failed(made.step.facts)
                raise
            except StaleGeneration:
                self._take_back(held, ahead)
                self._take_back(held, made)
                self._buffer.drop()
                self._observe(events.Rebuilding("stale"))
                break
            self._keep(held, made, receipt)
            steps += 1
            made = ahead
            if made is not None and not self._refill():
                self._take_back(held, made)
                break
        return steps

    def _step(self, held: WorkerState, drained: Collection[TopicPartition]) -> _Made | None:
        began_s = time.monotonic()
        if not self._complete():
            return None
        made = step(held.state, self._buffer.merge, drained, self._limit.records, self._explain())
        return None if made is None else _Made(made, began_s)

    def _step_ahead(self, held: WorkerState) -> _Made | None:
        """Of records so many that the session need not be asked which inputs are drained; else none."""
        if not self._is_enough() or self._stopping(False):
            return None
        return self._step(held, ())

    def _refill(self) -> bool:
        """Poll where little is left, so that a chain goes on as records arrive. False once the group has moved on."""
        return self._is_enough() or self._buffer.fill(0.0)

    def _is_enough(self) -> bool:
        """Whether so much is buffered that a step may be made ahead."""
        return self._buffer.merge.ready() >= max(1, self._limit.records // AHEAD)

    def _take_back(self, held: WorkerState, made: _Made | None) -> None:
        if made is not None:
            held.state.rollback(made.step.partitions)

    def _wait_for_end(self, sent: Future[Receipt], opened_s: float) -> Receipt:
        """What the commit returns or raises; the log limits how long it may take."""
        result: events.TransactionResult = "failed"
        try:
            receipt = sent.result()
            result = "committed"
            return receipt
        except (StaleGeneration, Fenced) as error:
            result = "fenced" if isinstance(error, Fenced) else "stale"
            raise
        finally:
            self._observe(events.TransactionEnded(result, time.monotonic() - opened_s))

    def _keep(self, held: WorkerState, made: _Made, receipt: Receipt) -> None:
        """The step is committed: it counts from now on."""
        done = made.step
        self._limit.committed()
        held.state.committed(done.transaction, receipt.ends)
        held.positions.update(done.transaction.positions)
        for (topic, partition), end in receipt.ends.items():
            if topic == "updates":
                held.fold.next_offsets[partition] = end
        took_s = time.monotonic() - made.began_s
        self._observe(events.StepCommitted(done.facts, done.totals, took_s, time.time()))
