"""The model, driven by a caller outside the simulation: each call goes on until it has its answer.

So the log's contract suite runs on the model as it does on a real Kafka, which keeps the model honest.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

from mistakebound.log.protocol import Log
from mistakebound.settings import LogSettings, Settings
from tests.log.support.place import PARTITIONS, Place
from tests.simulate.broker import Broker
from tests.simulate.client import Client, SimulatedLog
from tests.simulate.network import Network
from tests.simulate.scheduler import Scheduler
from tests.simulate.stand_ins import installed

PATIENCE_S = 600.0
"""Of virtual time."""


class SimulatedPlace(Place):
    """A model broker of the test's own, in the place of a real one."""

    def __init__(self, prefix: str) -> None:
        super().__init__("simulated", "kafka://simulated:9092", prefix, self._forget)
        self._scheduler = Scheduler(prefix)
        self._broker = Broker(self._scheduler, PARTITIONS, lambda: round(time.time() * 1000))
        self._network = Network(self._scheduler, self._broker)
        self._held = ExitStack()
        self._held.enter_context(installed(self._scheduler, lambda *_: None))

    def open(self, more: str = "", **topics: str) -> Log:
        settings = Settings(log=LogSettings(url=self.url, prefix=self.prefix + more))
        assert not topics
        log: Any = Driven(self._scheduler, SimulatedLog(settings, self._network, Client()))
        self.opened.append(log)
        return log  # type: ignore[no-any-return]

    def create(self, more: str = "", partitions: int = PARTITIONS, **topics: str) -> Log:
        assert partitions == PARTITIONS, "the model's topics are there from the beginning"
        return self.open(more, **topics)

    def _forget(self, name: str, partition: int, before: int) -> None:
        topic: Any = name.removeprefix(self.prefix)
        self._broker.forget((topic, partition), before)

    def close(self) -> None:
        for log in self.opened:
            driven: Any = log
            driven.end_followers()
        super().close()
        self._held.close()


class Driven:
    """A log or a session of the model."""

    def __init__(self, scheduler: Scheduler, driven: Any) -> None:
        self._scheduler, self._driven = scheduler, driven
        self._followers: list[Generator[Any]] = []

    def end_followers(self) -> None:
        """End those that a test began. Left in a cycle, as errors make them, they would be ended by the collector: amid a task,
        even of some later simulation, which then would never go on."""
        for each in self._followers:
            each.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driven, name) if name != "partitions" else self._driven.partitions
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            work: Callable[[], Any] = lambda: found(*arguments, **options)  # noqa: E731
            if name == "read":
                return iter(self._run(lambda: list(work())))
            answer = self._run(work)
            if name == "join":
                return Driven(self._scheduler, answer)
            if name != "follow":
                return answer
            follower = self._go_on(answer)
            self._followers.append(follower)
            return follower

        return call

    def _go_on(self, batches: Iterator[Any]) -> Generator[Any]:
        try:
            while True:
                yield self._run(lambda: next(batches))
        finally:
            self._run(batches.close)  # type: ignore[attr-defined]

    def _run(self, work: Callable[[], Any]) -> Any:
        answers: list[tuple[Any, BaseException | None]] = []

        def kept() -> None:
            try:
                answers.append((work(), None))
            except Exception as error:  # noqa: BLE001 - raised again for the caller
                answers.append((None, error))

        self._scheduler.spawn(kept, "caller")
        self._scheduler.run(lambda: answers, PATIENCE_S)
        answer, error = answers[0]
        if error is not None:
            raise error
        return answer
