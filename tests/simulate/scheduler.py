"""Virtual time, and one thing at a time: which task goes on next is drawn from the seed."""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

BUSY_S = 0.000_2
"""At most so much virtual time passes while a task works between two waits."""
LOOK_S = 0.1
"""After so much without a turn the caller looks whether something was reached."""
MOST_TURNS = 3_000_000
"""Of all tasks together; who needs more waits for nothing, again and again."""


class Crashed(BaseException):
    """The process that this task belongs to is dead. Nothing that it does any more has an effect."""


class Stuck(Exception):
    """No task can go on, and nothing will ever happen."""


@dataclass(eq=False)
class Process:
    """What crashes and pauses as one: its tasks, and its clock."""

    name: str
    dead: bool = False
    paused: bool = False
    clock_is_off_s: float = 0.0
    """How far its wall clock is from the true time."""
    awaited: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens to it when it next comes by a point of this name; it may be paused there."""
    tasks: set["Task"] = field(default_factory=set)


@dataclass(eq=False)
class Task:
    """One thread of a process."""

    name: str
    process: Process
    run: Any = None
    """Its greenlet."""
    done: bool = False
    waits: int = 0
    """Counts its waits, so that a wake-up meant for an earlier one does nothing."""
    waiting: bool = False


class Signal:
    """Something that tasks wait for. They look again whenever it fires."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Task, int]] = []


class Scheduler:
    """Runs tasks in turn, in an order that its seed decides. Time passes only when it says so."""

    def __init__(self, seed: object) -> None:
        self.random = Random(f"{seed}")
        self.now_s = 0.0
        """Since the beginning, for everybody."""
        self.told: list[str] = []
        """The story: what happened, and when."""
        self._hub = getcurrent()
        self._ready: list[Task] = []
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._current: Task | None = None
        self._world = Process("world")
        self.turns = 0
        self.failed: list[tuple[Task, BaseException]] = []
        """Tasks that ended with an error nobody expected."""

    # --- what happens ----------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """One line of the story."""
        self.told.append(f"{self.now_s:10.4f}  {text}")

    def at(self, time_s: float, call: Callable[[], None]) -> None:
        """Call it at that time, outside any task; it must not wait."""
        heapq.heappush(self._timers, (max(time_s, self.now_s), next(self._numbers), call))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.at(self.now_s + seconds, call)

    def spawn(self, work: Callable[[], Any], name: str, process: Process | None = None) -> Task:
        """A task of this process, or of the one that runs now."""
        owner = process or (self._current.process if self._current is not None else self._world)
        task = Task(name, owner)

        def run() -> None:
            try:
                self.check()
                work()
            except Crashed:
                pass
            except BaseException as error:  # noqa: BLE001 - the simulation reports it
                self.failed.append((task, error))
            finally:
                task.done = True
                owner.tasks.discard(task)

        task.run = greenlet(run, parent=self._hub)
        owner.tasks.add(task)
        self._ready.append(task)
        return task

    def crash(self, process: Process) -> None:
        """Its tasks end at the point where they are."""
        process.dead, process.paused = True, False
        for task in sorted(process.tasks, key=lambda each: each.name):
            self._wake(task, task.waits)

    # --- what tasks call -------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The one that runs."""
        assert self._current is not None, "only a task may wait"
        return self._current

    @property
    def in_task(self) -> bool:
        return self._current is not None

    def check(self) -> None:
        """Raise Crashed in a task of a dead process."""
        if self.task.process.dead:
            raise Crashed

    def sleep(self, seconds: float) -> None:
        self.wait(Signal(), lambda: False, seconds)

    def give_way(self) -> None:
        """A point at which another task may go on."""
        task = self.task
        self.check()
        self._ready.append(task)
        self._hub.switch()
        self.check()

    def come_by(self, point: str) -> None:
        """The process is at a point at which a fault may wait for it."""
        happens = self.task.process.awaited.pop(point, None)
        if happens is not None:
            happens()
            self.give_way()

    def wait(self, signal: Signal, met: Callable[[], Any], timeout_s: float | None = None) -> bool:
        """Wait until `met()` after the signal fired; False when the time is over before."""
        self.check()
        task = self.task
        deadline_s = None if timeout_s is None else self.now_s + max(0.0, timeout_s)
        if deadline_s is not None:
            self.at(deadline_s, lambda: self.fire(signal))
        while not met():
            if deadline_s is not None and self.now_s >= deadline_s:
                return False
            task.waits += 1
            task.waiting = True
            signal.waiting.append((task, task.waits))
            self._hub.switch()
            self.check()
        return True

    def fire(self, signal: Signal) -> None:
        """Whoever waits looks again."""
        waiting, signal.waiting = signal.waiting, []
        for task, number in waiting:
            self._wake(task, number)

    def _wake(self, task: Task, number: int) -> None:
        if task.waiting and task.waits == number and not task.done:
            task.waiting = False
            self._ready.append(task)

    # --- the hub ---------------------------------------------------------------------------------

    def run(self, until: Callable[[], Any], limit_s: float) -> None:
        """Go on until `until()`. Raises Stuck after so much virtual time, or when nothing can happen."""
        assert getcurrent() is self._hub, "called by a task, perhaps of another simulation"
        deadline_s = self.now_s + limit_s
        while not until():
            able = self._able(deadline_s)
            if not able:
                continue
            self.turns += 1
            if self.turns > MOST_TURNS:
                raise Stuck(f"busy for {MOST_TURNS} turns, and no end")
            self._go_on(self._ready.pop(able[int(self.random.random() * len(able))]))
            self.now_s += self.random.random() * BUSY_S

    def _able(self, deadline_s: float) -> Sequence[int]:
        """Places in `_ready` of tasks that can go on, as soon as there is one; none where there is not for a while."""
        timers, ready, until_s = self._timers, self._ready, self.now_s + LOOK_S
        while self.now_s < until_s:
            if self.now_s > deadline_s:
                raise Stuck(f"not done at {deadline_s:.0f} s")
            while timers and timers[0][0] <= self.now_s:
                heapq.heappop(timers)[2]()
            if ready and (able := [index for index, task in enumerate(ready) if not task.process.paused]):
                return able
            if not timers:
                raise Stuck("no task can go on")
            self.now_s = timers[0][0]
        return ()

    def _go_on(self, task: Task) -> None:
        self._current = task
        try:
            task.run.switch()
        finally:
            self._current = None
