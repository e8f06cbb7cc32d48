"""The loop: poll, step, commit; rebuild from the log when anything goes wrong.

No transaction is open while the group is polled, and every buffered record is of one generation: when
that changes, all of them are dropped. What a step did is in memory only until its transaction is
committed; if it is not, the step is taken back (the group moved on) or everything is rebuilt (the rest).
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Literal, cast

import structlog

from mistakebound.core.checkpoint import Checkpoint
from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.records import INPUTS
from mistakebound.core.step.merge import Merge
from mistakebound.log.protocol import (
    Fenced,
    Log,
    OffsetLost,
    Polled,
    Session,
    StaleGeneration,
    TransactionFailed,
    Unreachable,
)
from mistakebound.settings import Settings
from mistakebound.worker.assignment import WorkerState, take_over
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.epochs.epochs import begin_first
from mistakebound.worker.following import Following
from mistakebound.worker.health import Heartbeat
from mistakebound.worker.http.snapshot import Board
from mistakebound.worker.interruptible import Interrupted, InterruptibleLog
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight
from mistakebound.worker.rebuilds import Rebuilds
from mistakebound.worker.stepping import CHAIN, Stepping

POLL_S = 0.5
BUFFERED = 4
"""Steps' worth of records that is buffered."""
SHARED = 4
"""Most steps that are made without folding what others have learned."""
FEW = 10
"""A poll that brings less than this part of a step has brought all there was."""
LAG_EVERY_S = 2.0
LEAVE_S = 5.0
FENCED_AGAIN_S = 60.0
AWAY_REST_S = 1.0
AWAY_S = 600.0
"""How long a log may be unreachable before the worker gives up."""

_log = structlog.get_logger(__name__)


class Worker:
    """One process's work. `run` returns when `stopping` says so, or raises what ended it."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        slot: str,
        *,
        metrics: Metrics,
        heartbeat: Heartbeat,
        checkpointing: CheckpointSchedule,
        stopping: Callable[[bool], bool],
        board: Board | None = None,
        stepped: Callable[[WorkerState], None] | None = None,
        from_outcomes: bool = False,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stopping(idle)` is asked between steps; idle: everything there was has been worked off.

        `board` is for the status page; without one no mistake is explained.

        `stepped` is shown what is held whenever something was committed, and all of it is.
        `interrupted()` is asked while a takeover reads, which is then broken off: for the loop to end early.
        `from_outcomes` holds for the whole run: a partition without new input commits no offsets, and a
        rebuild finds it as the start did.
        """
        self._log, self._settings, self._slot = log, settings, slot
        self._metrics, self._heartbeat, self._checkpointing = metrics, heartbeat, checkpointing
        self._stopping, self._stepped, self._from_outcomes = stopping, stepped, from_outcomes
        self._interrupted = interrupted
        self.held: WorkerState | None = None
        self._insight = ModelInsight(metrics)
        self._board = board
        self._following: Following | None = None
        self._merge = Merge(())
        self._generation = -1
        self._moved: Polled | None = None
        """What a look between two steps brought, where that is another assignment."""
        self._rebuilds = Rebuilds()
        self._fenced_s: float | None = None
        self._away_s: float | None = None
        self._started = False
        self._lag_asked_s = 0.0

    def run(self) -> None:
        """Work until told to stop. Raises Fenced, Refused, BadLog, Unreachable, GaveUp."""
        begin_first(self._log, self._settings)
        while True:
            try:
                session = self._log.join(self._slot)
                try:
                    with ThreadPoolExecutor(1, "commit") as commits:
                        self._serve(session, self._make_stepping(session, commits))
                    return
                finally:
                    self._follow(())
                    session.close(LEAVE_S)
            except Interrupted:
                return
            except Fenced as error:
                now = time.monotonic()
                if self._fenced_s is not None and now - self._fenced_s < FENCED_AGAIN_S:
                    raise
                self._fenced_s = now
                self._rebuild("fenced", error)
            except TransactionFailed as error:
                self._rebuild("failed", error)
            except Unreachable as error:
                if not self._started:
                    raise
                self._wait_for_log(error)
            if self._stopping(False):
                return

    def _make_stepping(self, session: Session, commits: Executor) -> Stepping:
        return Stepping(
            session,
            commits,
            self._settings.batch,
            metrics=self._metrics,
            heartbeat=self._heartbeat,
            checkpointing=self._checkpointing,
            board=self._board,
            stopping=lambda: self._stopping(False),
            more=lambda: self._buffer_more(session),
        )

    def _serve(self, session: Session, stepping: Stepping) -> None:
        self._moved = None
        while True:
            polled = self._poll(session)
            idle = not polled.records and not self._merge.buffered()
            if idle:
                self._away_s = None
                self._checkpointing.consider(self.held)
            if self._stopping(idle and self._worked_off(session)):
                self._heartbeat.state("draining")
                self._metrics.state("draining")
                self._checkpointing.finish(self.held)
                return
            while self._work(stepping) and not self._stopping(False):
                pass
            self._pause(session)
            self._measure_lag(session)
            if self.held is not None:
                self._insight.measure(self.held.state)
                self._show(self.held)

    def _show(self, held: WorkerState) -> None:
        if self._board is not None:
            self._board.show(held.state, held.fold, self._insight.learned)

    def _poll(self, session: Session) -> Polled:
        """Buffer what there is; take over what the group gives."""
        timeout_s = 0.0 if self._merge.buffered() else POLL_S
        polled = self._fill(session, timeout_s) if self._moved is None else self._moved
        self._moved = None
        if polled.generation != self._generation:
            self._assigned(session, polled)
        return polled

    def _buffer_more(self, session: Session) -> None:
        """Buffer what came meanwhile, between two steps. Raises StaleGeneration where the group has moved on."""
        polled = self._fill(session, 0.0)
        if polled.generation != self._generation:
            self._moved = polled
            raise StaleGeneration("the group has moved on between two steps; roll back")
        self._pause(session)

    def _fill(self, session: Session, timeout_s: float) -> Polled:
        """Buffer until some steps' worth is there, its time is up, or what comes is little; returns the last look."""
        batch = self._settings.batch
        closing = time.monotonic() + batch.max_delay.total_seconds()
        buffered = size = 0
        while True:
            polled = session.poll(timeout_s)
            self._heartbeat.beat()
            self._metrics.polled(time.time())
            if polled.generation != self._generation:
                return polled
            size += self._merge.add(polled.records)
            buffered += len(polled.records)
            full = buffered >= BUFFERED * batch.max_records or size >= batch.max_bytes
            # One more look would cost what comes little more time than the little it might bring is worth.
            little = FEW * len(polled.records) < batch.max_records
            if full or little or time.monotonic() >= closing:
                return polled
            timeout_s = 0.0

    def _assigned(self, session: Session, polled: Polled) -> None:
        self._heartbeat.state("restoring")
        self._metrics.state("restoring")
        before = set() if self.held is None else set(self.held.state.ledgers)
        for partition in before - set(polled.partitions):
            self._metrics.revoked(partition)
        batch = self._settings.batch
        self._merge = Merge(polled.partitions, BUFFERED * batch.max_records, 4 * batch.max_bytes)
        began = time.monotonic()
        self._follow(())
        self.held = self._take_over(session, polled.partitions)
        self._follow(set(range(self._log.partitions)) - set(polled.partitions))
        self._generation = polled.generation
        self._started = True
        self._heartbeat.reachable(True)
        self._heartbeat.assigned(polled.partitions)
        self._heartbeat.state("running")
        self._metrics.assigned(len(polled.partitions))
        self._metrics.epoch(self.held.state.model.epoch)
        for partition in polled.partitions:
            self._metrics.partition(partition, self.held.state.totals(partition))
        self._metrics.state("running")
        _log.info(
            "assigned",
            partitions=list(polled.partitions),
            epoch=self.held.state.model.epoch,
            updates=self.held.state.model.updates,
            waiting=sum(len(ledger.waiting) for ledger in self.held.state.ledgers.values()),
            seconds=round(time.monotonic() - began, 3),
        )

    def _take_over(self, session: Session, partitions: tuple[int, ...]) -> WorkerState:
        shortcuts = self._checkpointing.shortcuts

        log = cast("Log", InterruptibleLog(self._log, self._interrupted))

        def take(held: WorkerState | None, checkpoint: Checkpoint | None) -> WorkerState:
            return take_over(
                log,
                session,
                self._settings,
                partitions,
                held,
                checkpoint,
                from_outcomes=self._from_outcomes,
                borrow=shortcuts.ledgers,
            )

        for checkpoint in shortcuts.usable() if self.held is None else ():
            try:
                return take(None, checkpoint)
            except (BadLog, BadSnapshot, OffsetLost) as error:  # on any doubt the log is folded
                shortcuts.reject(str(error))
        held, self.held = self.held, None
        return take(held, None)

    def _follow(self, partitions: Iterable[int]) -> None:
        """Follow the updates of these partitions from now on, and of no others."""
        if self._following is not None:
            self._following.close()
            self._following = None
        starts = {p: self.held.fold.next_offsets[p] for p in partitions} if self.held is not None else {}
        if starts:
            self._following = Following(self._log, starts)

    def _work(self, stepping: Stepping) -> bool:
        """Whether something was committed, and there may be more."""
        assert self.held is not None
        if self._following is not None:
            self._following.fold_into(self.held.fold)
        try:
            longest = CHAIN if self._following is None else SHARED
            committed = stepping.chain(self.held, self._merge, self._generation, longest) > 0
        except StaleGeneration:
            self._merge, self._generation = Merge(()), -1
            return False
        if committed:
            self._away_s = None
            self._checkpointing.consider(self.held)
            if self._stepped is not None:
                self._stepped(self.held)
        return committed

    def _pause(self, session: Session) -> None:
        pause, resume = self._merge.pausing()
        if pause:
            session.pause(pause)
        if resume:
            session.resume(resume)

    def _worked_off(self, session: Session) -> bool:
        if self.held is None or not self.held.state.ledgers:  # the group may not have shared out yet
            return False
        sides = [(topic, p) for topic in INPUTS for p in self.held.state.ledgers]
        return len(session.drained(sides)) == len(sides)

    def _measure_lag(self, session: Session) -> None:
        now = time.monotonic()
        if self.held is None or now - self._lag_asked_s < LAG_EVERY_S:
            return
        self._lag_asked_s = now
        ledgers = self.held.state.ledgers
        ends = session.ends([(topic, p) for topic in INPUTS for p in ledgers])
        waiting: dict[int, int] = dict.fromkeys(ledgers, 0)
        for (topic, p), end in ends.items():
            consumed = ledgers[p].examples_next if topic == "examples" else ledgers[p].labels_next
            waiting[p] += max(0, end - consumed)
            self._metrics.lag({("labels" if topic == "labels" else "examples", p): max(0, end - consumed)})
        self._heartbeat.lag(waiting)
        self._metrics.followed(0 if self._following is None else self._following.behind(self.held.fold))

    def _rebuild(self, reason: Literal["fenced", "failed", "unreachable"], error: Exception) -> None:
        _log.warning("rebuilding", reason=reason, error=str(error))
        self._metrics.rebuilt(reason)
        self._forget()
        self._rest(self._rebuilds.count(error))

    def _wait_for_log(self, error: Unreachable) -> None:
        """The log is away. Nothing is lost by waiting; the worker is live but not ready meanwhile."""
        now = time.monotonic()
        if self._away_s is None:
            _log.warning("log_unreachable", error=str(error))
            self._metrics.rebuilt("unreachable")
            self._away_s = now
        if now - self._away_s > AWAY_S:
            raise error
        self._forget()
        self._heartbeat.reachable(False)
        self._rest(AWAY_REST_S)

    def _rest(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stopping(False):
            time.sleep(0.05)

    def _forget(self) -> None:
        if self.held is not None:
            for partition in self.held.state.ledgers:
                self._metrics.revoked(partition)
        self._insight.forget()
        if self._board is not None:
            self._board.forget()
        self.held, self._generation, self._merge = None, -1, Merge(())
        self._heartbeat.assigned(())
