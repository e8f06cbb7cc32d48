"""Several brokers: which of them leads what, and what moves when one of them is away.

Partitions, the group and each transactional id have a leader each (of the last two: a coordinator). What is written is
on all brokers, so a move loses nothing; but requests to the former leader are refused, a coordinator has to load what
it takes over, and clients hear of both late.
"""

import zlib
from collections.abc import Collection

from mistakebound.core.records import TopicPartition
from tests.simulate.broker import BrokerError
from tests.simulate.scheduler import Scheduler

Place = TopicPartition | str
"""A partition, the group, or a transactional id."""
ELECTED_S = 3.0
"""At most so long after its leader is gone has a place another one."""
LOADING_S = 1.0
STALE = 0.2
"""Share of look-ups that are answered by a broker that has not heard of the newest leaders."""


class NotLeader(BrokerError): ...


class NotCoordinator(BrokerError): ...


class Loading(BrokerError):
    """COORDINATOR_LOAD_IN_PROGRESS."""


MOVED = (NotLeader, NotCoordinator, Loading)
"""Answers of a broker that did nothing: the request is sent again, to whoever leads by then."""


class Leaders:
    """Who leads what, in truth and as the clients believe."""

    def __init__(self, scheduler: Scheduler, brokers: int) -> None:
        self.brokers = brokers
        self.away: set[int] = set()
        self._scheduler = scheduler
        self._leads: dict[Place, int] = {}
        self._loading: dict[Place, float] = {}
        """Until when a coordinator loads."""
        self._believed: dict[tuple[str, Place], int] = {}
        """By process."""

    def of(self, place: Place) -> int:
        return self._leads.setdefault(place, zlib.crc32(repr(place).encode()) % self.brokers)

    def believed(self, place: Place) -> int:
        """The leader as the process that asks believes."""
        if self.brokers == 1:
            return 0
        key = self._scheduler.task.process.name, place
        if key not in self._believed:
            chance = self._scheduler.random
            self._believed[key] = (
                chance.randrange(self.brokers) if chance.random() < STALE else self.of(place)
            )
        return self._believed[key]

    def look_up_again(self, places: Collection[Place]) -> None:
        """The process has heard that something is wrong with what it believes."""
        for place in places:
            self._believed.pop((self._scheduler.task.process.name, place), None)

    def check(self, broker: int, places: Collection[Place]) -> None:
        """Raise one of MOVED where this broker cannot answer for all of these."""
        for place in places if self.brokers > 1 else ():
            if self.of(place) != broker:
                raise NotLeader if isinstance(place, tuple) else NotCoordinator
            if self._scheduler.now_s < self._loading.get(place, 0.0):
                raise Loading

    def answers(self, place: Place) -> bool:
        """Whether the leader of this place is there."""
        return not self.away or self.of(place) not in self.away

    def lose(self, broker: int, seconds: float) -> None:
        """This broker is away for so long; what it leads gets other leaders, unless it is back before."""
        self.away.add(broker)
        self._scheduler.after(seconds, lambda: self.away.discard(broker))
        self._scheduler.after(self._scheduler.random.random() * ELECTED_S, self._elect)

    def move(self) -> None:
        """Others lead from now on, as after a preferred election; nobody was away."""
        for place in list(self._leads):
            self._lead(place)

    def return_all(self) -> None:
        self.away.clear()

    def _elect(self) -> None:
        for place, leader in list(self._leads.items()):
            if leader in self.away:
                self._lead(place)

    def _lead(self, place: Place) -> None:
        there = [each for each in range(self.brokers) if each not in self.away]
        if not there:
            return
        self._leads[place] = self._scheduler.random.choice(there)
        if isinstance(place, str):
            self._loading[place] = self._scheduler.now_s + self._scheduler.random.random() * LOADING_S
