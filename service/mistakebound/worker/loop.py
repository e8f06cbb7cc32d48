"""The loop: poll, step, commit; rebuild from the log when anything goes wrong.

No transaction is open while the group is polled, and every buffered record is of one generation
(`input_buffer.py`). What a step did is in memory only until its transaction is committed; if the commit
fails, the step is taken back (when the group moved on) or everything is rebuilt (in all other cases).
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, cast

import structlog

from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.records import INPUTS, Stream
from mistakebound.core.step.schemas import Schemas
from mistakebound.log.protocol import (
    Fenced,
    Log,
    OffsetLost,
    Session,
    StaleGeneration,
    TransactionFailed,
    Unreachable,
)
from mistakebound.settings import Settings
from mistakebound.worker import events
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.epochs.epochs import begin_first
from mistakebound.worker.following import Following
from mistakebound.worker.input_buffer import InputBuffer
from mistakebound.worker.interruptible import Interrupted, InterruptibleLog
from mistakebound.worker.rebuilds import Rebuilds
from mistakebound.worker.registry.prefetch import Prefetch
from mistakebound.worker.step_limit import StepLimit
from mistakebound.worker.stepping import CHAIN, Stepping
from mistakebound.worker.takeover import NOTHING, Accepted, WorkerState, take_over
from mistakebound.worker.torn_steps import newest_step

POLL_S = 0.5
SHARED = 2
"""Most steps in a chain where there are other workers, whose updates are folded before each chain."""
LAG_EVERY_S = 2.0
LEAVE_S = 5.0
OVERTAKEN_REST_S = 0.2
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
        observe: events.Observe,
        checkpoints: CheckpointSchedule,
        stopping: Callable[[bool], bool],
        explain: Callable[[], int] = lambda: 0,
        accepted: Accepted = NOTHING,
        interrupted: Callable[[], bool] = lambda: False,
        prefetch: Prefetch | None = None,
    ) -> None:
        """`observe` sees every event. `checkpoints` is among its observers; it also says what a takeover may start from,
        and writes a last checkpoint at the end.

        `stopping(idle)` is asked between steps; idle: no input is left to work on.
        `explain()` is asked before each step how many scores it may compute to explain mistakes.
        `interrupted()` is asked while a takeover reads; once it is true, the takeover and the loop end.
        `accepted` holds for the whole run: a partition without new input commits no offsets, so a later
        rebuild finds the partition as the start did. `prefetch` gets the schemas that records name; without one, none is
        known.
        """
        self._prefetch = prefetch or Prefetch(Schemas(), None, (), 0.0)
        self._log, self._settings, self._slot = log, settings, slot
        self._observe, self._checkpoints, self._explain = observe, checkpoints, explain
        self._stopping, self._interrupted, self._accepted = stopping, interrupted, accepted
        self.held: WorkerState | None = None
        self._following: Following | None = None
        self._rebuilds = Rebuilds()
        self._step_limit = StepLimit(settings.batch.max_records)
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
                    if self._accepted.lost_input:
                        session.pass_damage()
                    self._serve(session)
                    return
                finally:
                    self._follow(())
                    session.close(LEAVE_S)
            except Interrupted:
                return
            except Fenced as error:
                self._rebuilds.refuse_fenced_again(error)
                self._rebuild("fenced", error)
            except TransactionFailed as error:
                self._rebuild("failed", error)
            except Unreachable as error:
                if not self._started:
                    raise
                self._wait_for_log(error)
            if self._stopping(False):
                return

    def _serve(self, session: Session) -> None:
        batch = self._settings.batch
        buffer = InputBuffer(session, batch, self._observe, self._prefetch.note)
        with ThreadPoolExecutor(1, "commit") as commits:
            stepping = Stepping(
                session,
                buffer,
                commits,
                self._step_limit,
                self._observe,
                self._explain,
                self._stopping,
                self._complete,
            )
            while self._go_on(session, buffer, stepping):
                pass

    def _go_on(self, session: Session, buffer: InputBuffer, stepping: Stepping) -> bool:
        """One round. Where the next input is gone, but others have read it, this worker stood still for long."""
        try:
            return self._come_round(session, buffer, stepping)
        except OffsetLost as error:
            if not self._is_overtaken(session, buffer):
                raise
            self._give_back(buffer, error)
            return not self._stopping(False)

    def _is_overtaken(self, session: Session, buffer: InputBuffer) -> bool:
        """Whether others have worked on partitions that were taken over here, whatever became of the group's offsets, or
        all is given back already."""
        if self.held is None:
            return buffer.is_given_back
        held = self.held.positions
        return any(
            position != held.get(p) or (position is None and newest_step(self._log, p) is not None)
            for p, position in session.committed(self.held.state.ledgers).items()
        )

    def _come_round(self, session: Session, buffer: InputBuffer, stepping: Stepping) -> bool:
        """Poll, take over new partitions, make steps; False once the worker is to stop."""
        buffer.fill(0.0 if buffer.merge.buffered() and not self._prefetch.away else POLL_S)
        if buffer.assigned is not None:
            try:
                self._take_over(session, buffer.assigned, buffer.generation)
            except StaleGeneration as error:
                self._give_back(buffer, error)
                return not self._stopping(False)
            assert self.held is not None
            buffer.begin(buffer.assigned, self.held.lost)
        idle = not buffer.merge.buffered()
        if idle:
            self._away_s = None
        if self._stopping(idle and buffer.worked_off()):
            self._observe(events.PhaseEntered("draining"))
            self._checkpoints.finish(self.held)
            return False
        while self._work(stepping) and not self._stopping(False):
            pass
        self._measure_lag(session, buffer)
        return True

    def _take_over(self, session: Session, partitions: tuple[int, ...], generation: int) -> None:
        self._observe(events.PhaseEntered("restoring"))
        _log.info("restoring", partitions=list(partitions))
        before = set() if self.held is None else set(self.held.state.ledgers)
        self._observe(events.Revoked(sorted(before - set(partitions))))
        began = time.monotonic()
        self._follow(())
        self.held = self._restore(session, partitions)
        self._repair(session, self.held, generation)
        self._follow(set(range(self._log.partitions)) - set(partitions))
        self._started = True
        state = self.held.state
        self._observe(events.Assigned(state.model.epoch, {p: state.totals(p) for p in partitions}))
        self._observe(events.PhaseEntered("running"))
        _log.info(
            "assigned",
            partitions=list(partitions),
            epoch=state.model.epoch,
            learner=state.model.settings.learner.kind,
            updates=state.model.updates,
            waiting=sum(len(ledger.waiting) for ledger in state.ledgers.values()),
            seconds=round(time.monotonic() - began, 3),
        )

    def _repair(self, session: Session, held: WorkerState, generation: int) -> None:
        repairs = held.repairs()
        if repairs is not None:
            held.state.committed(repairs, session.commit(repairs, generation).ends)
            held.positions.update(repairs.positions)
            held.repair.clear()

    def _give_back(self, buffer: InputBuffer, error: Exception) -> None:
        """Others work on these partitions by now, as the next polls will tell: take over again what is ours then."""
        _log.warning("takeover_overtaken", error=str(error))
        self._observe(events.Rebuilding("stale"))
        self._forget()
        buffer.give_back()
        self._rest(OVERTAKEN_REST_S)

    def _restore(self, session: Session, partitions: tuple[int, ...]) -> WorkerState:
        """From what is held, else from the first checkpoint that fits the log, else from the log alone."""
        restore = self._checkpoints.restore
        log = cast("Log", InterruptibleLog(self._log, self._interrupted))

        take = partial(
            take_over,
            log,
            session,
            self._settings,
            partitions,
            accepted=self._accepted,
            borrow=restore.ledgers,
            schemas=self._prefetch.schemas,
        )
        for checkpoint in restore.usable() if self.held is None else ():
            try:
                return take(held=None, checkpoint=checkpoint)
            except (BadLog, BadSnapshot, OffsetLost) as error:  # on any doubt the log is folded
                restore.reject(str(error))
        held, self.held = self.held, None
        return take(held=held, checkpoint=None)

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
        steps = stepping.chain(self.held, CHAIN if self._following is None else SHARED)
        if steps:
            self._away_s = None
        self._observe(events.Settled(self.held, steps))
        return steps > 0

    def _complete(self) -> bool:
        """Whether the schemas of all buffered records are there; else the worker goes round, polls, and asks again."""
        was_away = self._prefetch.away
        complete = self._prefetch.complete()
        if self._prefetch.away != was_away:
            self._observe(events.RegistryAnswers(not self._prefetch.away))
        return complete

    def _measure_lag(self, session: Session, buffer: InputBuffer) -> None:
        now = time.monotonic()
        if self.held is None or now - self._lag_asked_s < LAG_EVERY_S:
            return
        self._lag_asked_s = now
        inputs = [(topic, p) for topic in INPUTS for p in self.held.state.ledgers]
        records: dict[tuple[Stream, int], int] = {}
        # Not from the offset of the last record taken: behind it may be markers and aborted records alone.
        for (topic, p), left in session.undelivered(inputs).items():
            stream: Stream = "labels" if topic == "labels" else "examples"
            records[stream, p] = left + buffer.merge.count(topic, p)
        followed = 0 if self._following is None else self._following.behind(self.held.fold)
        self._observe(events.LagMeasured(records, followed))

    def _rebuild(self, reason: Literal["fenced", "failed"], error: Exception) -> None:
        _log.warning("rebuilding", reason=reason, error=str(error))
        self._observe(events.Rebuilding(reason))
        self._forget()
        self._rest(self._rebuilds.count(error))

    def _wait_for_log(self, error: Unreachable) -> None:
        """The log is away. Nothing is lost by waiting; the worker is live but not ready meanwhile."""
        now = time.monotonic()
        if self._away_s is None:
            _log.warning("log_unreachable", error=str(error))
            self._observe(events.Rebuilding("unreachable"))
            self._away_s = now
        if now - self._away_s > AWAY_S:
            raise error
        self._forget()
        self._observe(events.LogUnreachable())
        self._rest(AWAY_REST_S)

    def _rest(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stopping(False):
            time.sleep(0.05)

    def _forget(self) -> None:
        """Without its state it is not ready, however long it takes until partitions can be taken over again."""
        self.held = None
        self._observe(events.PhaseEntered("restoring"))
        self._observe(events.StateDropped())
