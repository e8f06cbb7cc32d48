"""Steps and their transactions, one after another; each step but the first is made during another's commit.

A step's transaction begins after that of the step before it is committed. If the group has moved on, the step
is taken back, and first the one that was made ahead of it. What a step did is told to nobody before it is
committed.
"""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import NamedTuple

from mistakebound.core.records import TopicPartition
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import Step, step
from mistakebound.log.protocol import (
    Fenced,
    Receipt,
    Session,
    StaleGeneration,
    TransactionFailed,
    Unreachable,
)
from mistakebound.settings import BatchSettings
from mistakebound.worker.assignment import WorkerState
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.health import Heartbeat
from mistakebound.worker.http.snapshot import Board
from mistakebound.worker.metrics.metrics import Metrics

CHAIN = 16
"""Most steps that are made one after the other. Behind the last one no other is made during its commit."""


class _Made(NamedTuple):
    step: Step
    began_s: float
    """On the monotonic clock."""


class Stepping:
    """One session's steps. The session is used by one thread at a time: this one's, or that of the commits."""

    def __init__(
        self,
        session: Session,
        commits: Executor,
        batch: BatchSettings,
        *,
        metrics: Metrics,
        heartbeat: Heartbeat,
        checkpointing: CheckpointSchedule,
        board: Board | None,
        stopping: Callable[[], bool],
        more: Callable[[], None],
    ) -> None:
        """`commits`: of one thread, and waited for before the session is closed. `stopping()`: no step is made
        ahead any more. `more()` buffers what has come meanwhile; it is asked for when no transaction is open, and
        raises StaleGeneration when the group has moved on."""
        self._session, self._commits, self._most = session, commits, batch.max_records
        self._metrics, self._heartbeat, self._checkpointing = metrics, heartbeat, checkpointing
        self._board, self._stopping, self._more = board, stopping, more

    def chain(self, held: WorkerState, merge: Merge, generation: int, longest: int) -> int:
        """Make steps while there is something to take, `longest` at most; returns how many were committed.

        Afterwards nothing is held that is not committed. Raises StaleGeneration, when the last one was taken
        back; after Fenced, TransactionFailed and Unreachable what is held is of no use.
        """
        dry = merge.dry()
        made = self._step(held, merge, self._session.drained(dry) if dry else ())
        steps = 0
        while made is not None:
            self._metrics.opened()
            opened_s = time.monotonic()
            sent = self._commits.submit(self._session.commit, made.step.transaction, generation)
            ahead = self._step_ahead(held, merge) if steps + 1 < longest else None
            try:
                receipt = self._ended(sent, opened_s)
            except StaleGeneration:
                self._take_back(held, ahead)
                self._take_back(held, made)
                raise
            self._keep(held, made, receipt)
            steps += 1
            made = ahead
            if made is not None and merge.ready() < self._most:
                try:
                    self._more()
                except StaleGeneration:
                    self._take_back(held, made)
                    raise
        return steps

    def _step(self, held: WorkerState, merge: Merge, drained: Collection[TopicPartition]) -> _Made | None:
        began_s = time.monotonic()
        explain = 0 if self._board is None else self._board.allowance()
        made = step(held.state, merge, drained, self._most, explain)
        return None if made is None else _Made(made, began_s)

    def _step_ahead(self, held: WorkerState, merge: Merge) -> _Made | None:
        """Only a whole one, for which the session need not be asked."""
        if merge.ready() < self._most or self._stopping():
            return None
        return self._step(held, merge, ())

    def _take_back(self, held: WorkerState, made: _Made | None) -> None:
        if made is not None:
            held.state.rollback(made.step.partitions)

    def _ended(self, sent: Future[Receipt], opened_s: float) -> Receipt:
        """Wait for the commit's end; the log has its own limit for that."""
        try:
            receipt = sent.result()
        except StaleGeneration:
            self._metrics.transaction("stale", time.monotonic() - opened_s)
            self._metrics.rebuilt("stale")
            raise
        except (Fenced, TransactionFailed, Unreachable) as error:
            self._metrics.transaction(
                "fenced" if isinstance(error, Fenced) else "failed", time.monotonic() - opened_s
            )
            raise
        self._metrics.transaction("committed", time.monotonic() - opened_s)
        return receipt

    def _keep(self, held: WorkerState, made: _Made, receipt: Receipt) -> None:
        """The step is committed: it counts from now on."""
        done = made.step
        held.state.committed(receipt.ends)
        held.positions.update(done.transaction.positions)
        for (topic, partition), end in receipt.ends.items():
            if topic == "updates":
                held.fold.next_offsets[partition] = end
        self._metrics.stepped(done.facts, time.monotonic() - made.began_s, time.time())
        if self._board is not None:
            self._board.stepped(done.facts)
        for partition, totals in done.totals.items():
            self._metrics.partition(partition, totals)
        self._heartbeat.stepped(done.partitions)
        self._checkpointing.committed(sum(done.facts.updates.values()))
