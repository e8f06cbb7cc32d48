"""What production code takes from `time`, `threading`, `queue` and `concurrent.futures`, in the scheduler's terms.

`installed` puts them in the place of these modules while a simulation runs, in the modules that use them.
"""

import queue
import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from mistakebound.log.kafka import read
from mistakebound.worker import following, input_buffer, interruptible, loop, rebuilds, stepping
from mistakebound.worker.checkpoints import restore, schedule, writer
from mistakebound.worker.epochs import epochs
from tests.simulate.scheduler import Scheduler, Signal

BEGUN_S = 1_750_000_000.0
"""Unix time at which every simulation begins."""


class Clock:
    """`time`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.sleep = scheduler.sleep

    def monotonic(self) -> float:
        return self._scheduler.now_s

    def time(self) -> float:
        """As the process believes."""
        off_s = self._scheduler.task.process.clock_is_off_s if self._scheduler.in_task else 0.0
        return BEGUN_S + self._scheduler.now_s + off_s


class Thread:
    """`threading.Thread`: a task of the process that makes it."""

    def __init__(
        self, scheduler: Scheduler, target: Callable[[], None], name: str = "thread", *, daemon: bool = False
    ) -> None:
        self._scheduler, self._work, self._name, self._daemon = scheduler, target, name, daemon
        self._ended = Signal()
        self._done = False

    def start(self) -> None:
        self._scheduler.spawn(self._run, self._name)

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.wait(self._ended, lambda: self._done, timeout)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._done = True
            self._scheduler.fire(self._ended)


class Event:
    """`threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._signal, self._is_set = scheduler, Signal(), False

    def set(self) -> None:
        self._is_set = True
        self._scheduler.fire(self._signal)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait(self._signal, self.is_set, timeout)


class Queue:
    """`queue.Queue`."""

    def __init__(self, scheduler: Scheduler, most: int) -> None:
        self._scheduler, self._most, self._changed = scheduler, most, Signal()
        self._items: list[Any] = []

    def put(self, item: Any, timeout: float | None = None) -> None:
        if not self._scheduler.wait(self._changed, lambda: len(self._items) < self._most, timeout):
            raise queue.Full
        self._items.append(item)
        self._scheduler.fire(self._changed)

    def get_nowait(self) -> Any:
        if not self._items:
            raise queue.Empty
        self._scheduler.fire(self._changed)
        return self._items.pop(0)


class Future:
    """`concurrent.futures.Future`, as far as it is used."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self.ended = scheduler, Signal()
        self._outcome: tuple[Any, BaseException | None] | None = None

    def set_result(self, value: Any) -> None:
        self._outcome = value, None
        self._scheduler.fire(self.ended)

    def set_exception(self, error: BaseException) -> None:
        self._outcome = None, error
        self._scheduler.fire(self.ended)

    def done(self) -> bool:
        return self._outcome is not None

    def result(self) -> Any:
        self._scheduler.wait(self.ended, self.done)
        assert self._outcome is not None
        value, error = self._outcome
        if error is not None:
            raise error
        return value


class Executor:
    """`concurrent.futures.ThreadPoolExecutor` with one thread."""

    def __init__(self, scheduler: Scheduler, most: int, name: str) -> None:
        assert most == 1
        self._scheduler, self._name = scheduler, name
        self._last: Future | None = None

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future:
        assert self._last is None or self._last.done(), "the one thread is still at work"
        future = self._last = Future(self._scheduler)

        def work() -> None:
            try:
                value = call(*arguments)
            except Exception as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)
            else:
                future.set_result(value)

        self._scheduler.spawn(work, self._name)
        return future

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._scheduler.wait(self._last.ended, self._last.done)


class Done(NamedTuple):
    """What `concurrent.futures.wait` returns."""

    done: Collection[Any]
    not_done: Collection[Any]


def _wait(scheduler: Scheduler, waited_for: list[Future], timeout_s: float) -> Done:
    (one,) = waited_for
    scheduler.wait(one.ended, one.done, timeout_s)
    return Done([one] if one.done() else [], [] if one.done() else [one])


@contextmanager
def installed(scheduler: Scheduler, stores: Callable[..., Any]) -> Iterator[None]:
    """Production code lives in this scheduler's world inside the block; `stores` opens checkpoint stores."""
    clock = Clock(scheduler)
    threading = SimpleNamespace(Thread=partial(Thread, scheduler), Event=partial(Event, scheduler))
    queues = SimpleNamespace(Queue=_made(Queue, scheduler), Empty=queue.Empty, Full=queue.Full)
    places: list[tuple[Any, str, Any]] = [
        *((module, "time", clock) for module in _TELLING_TIME),
        (loop, "ThreadPoolExecutor", partial(Executor, scheduler)),
        (loop, "Rebuilds", partial(rebuilds.Rebuilds, clock.monotonic)),
        (following, "threading", threading),
        (following, "queue", queues),
        (schedule, "wait", partial(_wait, scheduler)),
        (schedule, "open_store", stores),
        (writer, "threading", threading),
        (writer, "Future", _made(Future, scheduler)),
        (epochs, "random", random.Random(scheduler.random.random())),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    try:
        for module, name, stand_in in places:
            setattr(module, name, stand_in)
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)


_TELLING_TIME = (loop, stepping, input_buffer, interruptible, read, schedule, writer, restore, epochs)


def _made(kind: Callable[..., Any], scheduler: Scheduler) -> Any:
    class Made:
        """Stands for a generic class: `Queue[int]` is only an annotation."""

        def __new__(cls, *arguments: Any) -> Any:
            return kind(scheduler, *arguments)

        def __class_getitem__(cls, _: Any) -> Any:
            return cls

    return Made
