"""One process of a worker: started, asked to stop, and what must be true when it ends."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mistakebound.core.faults import BadLog
from mistakebound.log.protocol import Fenced, Refused, TransactionFailed, Unreachable
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.events import Assigned, Event, StepCommitted, show_all
from mistakebound.worker.health import HealthLimits, Heartbeat
from mistakebound.worker.loop import Worker
from mistakebound.worker.rebuilds import GaveUp
from mistakebound.worker.takeover import NOTHING, Accepted
from tests.simulate.broker import Broker
from tests.simulate.checks import Failure
from tests.simulate.client import Client, SimulatedLog
from tests.simulate.network import Network
from tests.simulate.scheduler import Process

NAMED_ENDS = (Unreachable, Fenced, GaveUp, TransactionFailed)
"""A supervisor starts a worker again that ended with one of these."""
ONLY_AT_THE_START = (Unreachable, TransactionFailed)
"""Once it has begun its work, a worker gets over these by itself."""
REFUSALS = (Refused, BadLog)
LIMITS = HealthLimits()


class NoMetrics:
    """Takes whatever it is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@dataclass(eq=False)
class Run:
    """One process of a slot, from its start to its end."""

    slot: str
    process: Process
    began_s: float
    accepted: Accepted
    at_work: bool = True
    stopped_s: float | None = None
    """When it was asked to stop."""
    ended: BaseException | None = None
    worker: Worker | None = None
    heartbeat: Heartbeat | None = None
    log: SimulatedLog | None = field(default=None, repr=False)

    @property
    def is_ready(self) -> bool:
        return self.heartbeat is not None and self.heartbeat.health(LIMITS).ready

    def work(self, settings: Settings, network: Network, client: Client) -> None:
        """The process's main thread. Raises Failure where the worker ended as it must not; other errors as they are."""
        clock: Callable[[], float] = lambda: network.scheduler.now_s  # noqa: E731
        log = self.log = SimulatedLog(settings, network, client)
        self.heartbeat = Heartbeat(clock)
        checkpoints: Any = CheckpointSchedule(log, settings, self.slot, NoMetrics())  # type: ignore[arg-type]
        self.worker = Worker(
            log, settings, self.slot,
            observe=show_all(partial(self._look, network.broker), self.heartbeat.observe, checkpoints.observe),
            checkpoints=checkpoints,
            stopping=lambda idle: self.stopped_s is not None,
            interrupted=lambda: self.stopped_s is not None,
            accepted=self.accepted,
        )  # fmt: skip
        with suppress(*NAMED_ENDS, *REFUSALS):
            try:
                self.worker.run()
            except Exception as error:
                self.ended = error
                raise
        if isinstance(self.ended, ONLY_AT_THE_START) and self.worker._started:
            raise Failure(f"it did not get over this: {self.ended!r}")
        self._check_left_over(log)

    def _look(self, broker: Broker, event: Event) -> None:
        """No observer is shown a step before its transaction is committed, nor a takeover that took a step for torn."""
        if not isinstance(event, StepCommitted | Assigned):
            return
        assert self.worker is not None
        held = self.worker.held
        assert held is not None
        if isinstance(event, StepCommitted):
            for p in event.totals:
                if (p, held.positions[p]) not in broker.decided:
                    raise Failure(f"{self.slot} shows a step of partition {p} that is not committed")
        elif self.accepted == NOTHING:  # then no step is torn, here
            assert self.log is not None
            for p in event.totals:
                if held.positions.get(p) != self.log.told[p] or held.state.ledgers[p].published:
                    raise Failure(f"{self.slot} takes a step of partition {p} for torn, and it is not")

    def _check_left_over(self, log: SimulatedLog) -> None:
        """Nothing of its following is left when a worker has ended."""
        threads = [each.name for each in self.process.tasks if each.name == "following"]
        if threads:
            raise Failure(f"{len(threads)} threads follow after the end")
        if log.following:
            raise Failure(f"{log.following} clients follow after the end")
