"""What is tried when all is quiet and every worker is well: rare states, so that not only chance has to lead there.

Afterwards everything must be as well as before.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Final

from mistakebound.core.records import Topic
from mistakebound.worker.interruptible import WAIT_S
from tests.simulate.broker import SESSION_S
from tests.simulate.checks import Failure
from tests.simulate.striking import AWAY_NOTICED_S

if TYPE_CHECKING:
    from tests.simulate.fleet import Simulation

SHARE = 0.2
"""Of all seeds have one."""
RESTORED_S = 400.0
AWAY_S = AWAY_NOTICED_S + 10
STARTED_S = WAIT_S + 20
"""A worker that starts has read what it needs after so long, or has given up."""
OPEN_S = STARTED_S + 10
FED_EVERY_S = 3.0
READ: tuple[Topic, ...] = ("updates", "predictions", "outcomes")
"""Outputs that a takeover reads."""


class Trial:
    """The one of this run, or none."""

    def __init__(self, run: "Simulation") -> None:
        self._run, self._chance = run, Random(f"{run.seed} trial")
        self.name = self._chance.choice(sorted(TRIALS)) if self._chance.random() < SHARE else ""

    def take_place(self) -> None:
        if self.name:
            self._run.scheduler.tell(f"trial: {self.name}")
            TRIALS[self.name](self)
            self._run.until(self._run.is_level, RESTORED_S, f"every worker is well after {self.name}")

    def outage(self) -> None:
        """The log is away for so long that no worker may say that it is ready (`striking.py` looks on)."""
        self._run.broker.down = True
        self._pass(AWAY_S)
        self._run.broker.down = False

    def open_transaction(self) -> None:
        """All workers begin anew below a transaction that does not end: who needs what lies below gives up, and who is
        told to stop meanwhile stops."""
        run, chance = self._run, self._chance
        at = chance.choice(READ), chance.randrange(run.broker.partitions)
        end = run.broker.leave_open("stranger-at-the-end", at)
        for slot in run.slots:
            if slot.run is not None and slot.run.at_work:
                run.end(slot.run)
            run.start(slot)
            if chance.random() < 0.5:
                first = slot.run
                assert first is not None
                run.scheduler.after(chance.random() * WAIT_S, lambda first=first: run.ask_to_stop(first))
        self._pass(OPEN_S, self._starts_in_time)
        end()

    def overtaken(self) -> None:
        """One starts anew and stands still once it has been told the positions, until others have gone on."""
        run = self._run
        fed_s = run.scheduler.now_s
        run.striking.overtake(self._chance.choice(run.slots), 2 * SESSION_S)

        def feed() -> None:
            nonlocal fed_s
            if run.scheduler.now_s >= fed_s:
                run.append_probes()
                fed_s += FED_EVERY_S

        self._pass(3 * SESSION_S, feed)
        run.until(run.worked_off, RESTORED_S, "everything is worked off after a takeover that was overtaken")

    def _starts_in_time(self) -> None:
        for run in self._run.runs():
            starts = run.worker is not None and not run.worker._started
            if starts and self._run.scheduler.now_s - run.began_s > STARTED_S:
                raise Failure(f"{run.process.name} neither starts nor gives up within {STARTED_S:.0f} s")

    def _pass(self, seconds: float, look: Callable[[], None] = lambda: None) -> None:
        end_s = self._run.scheduler.now_s + seconds

        def passed() -> bool:
            look()
            return self._run.scheduler.now_s > end_s

        self._run.until(passed, 2 * seconds, "the trial ends")


TRIALS: Final[Mapping[str, Callable[[Trial], None]]] = {
    "an outage": Trial.outage,
    "an open transaction": Trial.open_transaction,
    "a takeover overtaken": Trial.overtaken,
}
