"""The way to the brokers: requests take time, connections end, and what was under way may arrive all the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.simulate.broker import Broker, BrokerError
from tests.simulate.leaders import MOVED, Leaders, Place
from tests.simulate.scheduler import Scheduler, Signal

Answer = TypeVar("Answer")
REQUEST_S = 5.0
WORSE = 0.5
"""Share of a process's requests whose connection ends while its own line is bad."""
LATE_S = 8.0
"""At most so much later than a lost connection does a request of it arrive."""
LATE_REQUESTS = 6
"""Or right before one of so many later requests of the same process to the same coordinator: amid its next transaction."""


class ConnectionEnded(BrokerError):
    """The connection ended before the answer: the request has arrived, or will, or never."""


class NoAnswer(BrokerError):
    """Nothing came within the time for a request."""


@dataclass
class Weather:
    """How the network is at present."""

    delay_s: float = 0.002
    ends: float = 0.0
    """Share of requests whose connection ends before the answer."""
    silent: bool = False
    """Nothing arrives, in either direction, until that is over; nobody is told."""


class Network:
    """Carries each call to the broker, and its answer back."""

    def __init__(self, scheduler: Scheduler, broker: Broker, brokers: int = 1) -> None:
        self.scheduler, self.broker = scheduler, broker
        self.leaders = broker.leads = Leaders(scheduler, brokers)
        self.weather = Weather()
        self.worse_until_s: dict[str, float] = {}
        """By process: until when most of its connections end."""
        self._late: dict[tuple[str, Place], list[tuple[int, Callable[[], None]]]] = {}
        """By process and coordinator: requests whose connection has ended, and how many others come first."""

    def ask(self, call: Callable[[], Answer], *places: Place) -> Answer:
        """The answer of the broker that leads these places, as far as is known. Raises what it answers, ConnectionEnded,
        NoAnswer."""
        try:
            return self._ask(call, places, self.leaders.believed(places[0]) if places else 0)
        except (ConnectionEnded, NoAnswer, *MOVED):
            self.leaders.look_up_again(places)
            raise

    def _ask(self, call: Callable[[], Answer], places: Sequence[Place], asked: int) -> Answer:
        scheduler, chance = self.scheduler, self.scheduler.random
        scheduler.check()
        answered, answers = Signal(), list[Any]()
        fate, waits = "whole", True
        key = (scheduler.task.process.name, places[0]) if places and isinstance(places[0], str) else None
        own_s = self.worse_until_s.get(scheduler.task.process.name, 0.0)
        if chance.random() < (WORSE if scheduler.now_s < own_s else self.weather.ends):
            fate = chance.choice(("lost", "unanswered", "late"))

        def give(answer: Any) -> None:
            if self.weather.silent and not isinstance(answer, ConnectionEnded):
                scheduler.after(0.1, lambda: give(answer))
                return
            answers.append(answer)
            scheduler.fire(answered)

        was_silent = False

        def arrive() -> None:
            nonlocal was_silent
            if self.broker.down or asked in self.leaders.away:
                scheduler.after(self._delay_s(), lambda: give(ConnectionEnded()))
                return
            if self.weather.silent or scheduler.now_s < self.broker.stalled_until_s:
                was_silent = was_silent or self.weather.silent
                scheduler.after(0.1, arrive)
                return
            if not waits and was_silent and chance.random() < 0.5:
                return  # who gave it up closed the connection, and it was still on its way
            self._bring_late(key)
            try:
                self.leaders.check(asked, places)
                answer: Any = call()
            except BrokerError as error:
                answer = error
            if fate == "whole":
                scheduler.after(self._delay_s(), lambda: give(answer))

        if fate == "late" and key is not None and chance.random() < 0.5:
            self._late.setdefault(key, []).append((chance.randrange(LATE_REQUESTS), arrive))
        elif fate == "late":
            scheduler.after(chance.random() ** 2 * LATE_S, arrive)
        elif fate != "lost":
            scheduler.after(self._delay_s(), arrive)
        if fate != "whole":
            scheduler.after(2 * self._delay_s(), lambda: give(ConnectionEnded()))
        if not scheduler.wait(answered, lambda: answers, REQUEST_S):
            waits = False
            raise NoAnswer
        if isinstance(answers[0], BrokerError):
            raise answers[0]
        found: Answer = answers[0]
        return found

    def _bring_late(self, key: tuple[str, Place] | None) -> None:
        """Another request is about to arrive: those whose turn it is come first."""
        waiting = self._late.pop(key, ()) if key is not None else ()
        for others, arrive in waiting:
            if others > 0:
                self._late.setdefault(key, []).append((others - 1, arrive))
        for others, arrive in waiting:
            if others == 0:
                arrive()

    def _delay_s(self) -> float:
        return self.weather.delay_s * (0.5 + self.scheduler.random.random() ** 4 * 10)
