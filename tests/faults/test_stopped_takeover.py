"""A worker is stopped amid a takeover and wakes when others own its partitions and have gone on: what it has read is
of two moments, and it must neither refuse because of that nor work with it."""

import signal
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.faults.support.chance import chance_of, examples, rounds, workers
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet, members, owned, taken_over
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.open_transactions import open_below
from tests.faults.support.stream import SETTINGS, stream
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy
from tests.log.support.requests import Kind, Request

pytestmark = pytest.mark.kafka

RULES = (
    "batch.max_records=50",
    "checkpoint.every=0.5",
    "kafka.session_timeout_ms=2000",
    "kafka.heartbeat_interval_ms=300",
)
PATIENT = "from mistakebound.log.kafka import timeouts; timeouts.TRANSACTION_MS = 60000"
"""The broker leaves the transaction of a worker open that is stopped amid it; a worker that was fenced twice within a
minute would end, and rightly."""
ZOMBIE = "zombie"
FED = 200
TRICKLE = 3
"""Records, about fifty times a second."""
PASSED_S = 15.0
"""A worker that took over so long ago has come by every point of that."""
LONGEST_S = 4.0
"""From what begins a takeover to a stop at random: mostly it is over by then."""


class Point(NamedTuple):
    """Where the worker is stopped: at the first such request after it has asked for the committed positions."""

    kind: Kind
    topic: str = ""
    answered: bool = False
    """Once the answer has come, and before the worker has it."""
    open: bool = False
    """A transaction is open there, so the others cannot go on before it wakes."""


POINTS = {
    "the positions are read": Point(Kind.OFFSET_FETCH, answered=True),
    "the end of `updates` is known": Point(Kind.LIST_OFFSETS, "updates", answered=True),
    "`updates` is read": Point(Kind.FETCH, "updates", answered=True),
    "the checkpoint is restored": Point(Kind.LIST_OFFSETS, "outcomes"),
    "the end of `predictions` is known": Point(Kind.LIST_OFFSETS, "predictions", answered=True),
    "`predictions` is looked at": Point(Kind.FETCH, "predictions", answered=True),
    "the end of `outcomes` is known": Point(Kind.LIST_OFFSETS, "outcomes", answered=True),
    "`outcomes` is read": Point(Kind.FETCH, "outcomes", answered=True),
    "the inputs are sought": Point(Kind.FETCH, "examples"),
    "the first inputs have come": Point(Kind.FETCH, "examples", answered=True),
    "the first transaction begins": Point(Kind.ADD_PARTITIONS),
    "the first outputs are sent": Point(Kind.PRODUCE, answered=True, open=True),
    "the first positions are sent": Point(Kind.OFFSETS, answered=True, open=True),
    "the first commit": Point(Kind.END, open=True),
}
SOONEST = next(iter(POINTS))
"""Whoever wakes there late has read positions of one moment and logs of another."""
AT_RANDOM = "at random"


@pytest.mark.usefixtures("by_each_client")
def test_a_worker_stopped_amid_a_takeover_goes_on_with_what_others_did(
    proxied: tuple[Broker, Proxy], prefix: str, children: Children
) -> None:
    """At each point from the committed positions to the first commit, and at random: while it starts, and while it
    takes over from another. It wakes at once, or when its session is over, or when others have done all there is to
    do. No worker ends; recount, `status`, audit and digests agree."""
    broker, proxy = proxied
    chance = chance_of("stopped takeover")
    count = rounds(3, 2 * len(POINTS))
    points = plan(chance, count)
    records = stream(examples(1_000 + 600 * count), chance.randrange(2**32))
    others = [f"other-{number}" for number in range(1, workers(2))]
    begun = time.monotonic()
    with (
        Deployment(f"kafka://{broker.bootstrap}", prefix, children, *SETTINGS, *RULES) as place,
        Onlooker(broker.bootstrap, f"{prefix}predictions") as onlooker,
    ):
        feed = Feed(place, records)
        stage = Stage(place, feed, Fleet(place, may_end=()), broker, proxy, others, chance)
        feed.to(1_000)
        stage.fleet.start(*others)
        stage.start_zombie()
        stage.fleet.shared_out()
        for number, name in enumerate(points):
            how = stage.stop_amid_a_takeover(name)
            feed.more(FED)
            woken = stage.others_go_on(name)
            stage.wake(woken)
            print(f"{time.monotonic() - begun:.1f} s: {number + 1}. {how}, {name}; woken {woken}; is back")
        feed.rest()
        found = stage.fleet.prove()
        onlooker.saw_once(set(found.predictions))
    assert open_below(broker.bootstrap, prefix) == {}


def plan(chance: Random, count: int) -> list[str]:
    """So many stops: each point once, all but the first in the order of chance, then stops at random."""
    placed = [name for name in POINTS if name != SOONEST]
    chance.shuffle(placed)
    return [SOONEST, *placed, *([AT_RANDOM] * count)][:count]


@dataclass
class Stage:
    """The workers, of which one has its way to the broker through the proxy, and is stopped again and again."""

    place: Deployment
    feed: Feed
    fleet: Fleet
    broker: Broker
    proxy: Proxy
    others: list[str]
    chance: Random
    _taken: int = 0
    """Takeovers of the zombie when it was stopped."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def zombie(self) -> Child:
        return self.fleet.workers[ZOMBIE]

    def start_zombie(self) -> None:
        direct = self.place.options[1]
        self.place.options[1] = f"kafka://127.0.0.1:{self.proxy.port}"
        self.fleet.start(ZOMBIE, first=PATIENT)
        self.place.options[1] = direct

    def stop_amid_a_takeover(self, name: str) -> str:
        """Begin a takeover of the zombie, and stop it there; returns how the takeover began."""
        self._stopped.clear()
        starts = self.chance.random() < 0.5
        if starts:
            self.fleet.stop(ZOMBIE)
        if name != AT_RANDOM:
            self.proxy.halt(self._first(POINTS[name]), self._stop, answered=POINTS[name].answered)
        if starts:
            self.start_zombie()
        else:
            self.fleet.stop(self.others[0])
        if name == AT_RANDOM:
            time.sleep(self.chance.uniform(0, LONGEST_S))
            self._stop()
        self._until_stopped(name)
        if not starts:
            self.fleet.start(self.others[0])
        return "while it starts" if starts else "while it takes over from another"

    def _until_stopped(self, name: str) -> None:
        """It starts anew where a takeover did not come by there: it may have had nothing to read."""
        while not self._stopped.is_set():
            before = len(taken_over(self.zombie))
            since: list[float] = []

            def met(before: int = before, since: list[float] = since) -> bool:
                # More is fed all the time: without input it never comes to its first transaction.
                self.feed.more(TRICKLE)
                if not since and len(taken_over(self.zombie)) > before:
                    since.append(time.monotonic())
                return self._stopped.is_set() or bool(since and time.monotonic() > since[0] + PASSED_S)

            self.fleet.until(met, f"the zombie is stopped: {name}")
            if not self._stopped.is_set():
                self.fleet.stop(ZOMBIE)
                self.start_zombie()

    def others_go_on(self, name: str) -> str:
        """Until the zombie is to wake; says when that is."""
        woken = self.chance.choice(("at once", "early", "late", "late", "late"))
        if name == SOONEST:
            woken = "late"
        elif woken == "late" and name != AT_RANDOM and POINTS[name].open:
            woken = "early"
        if woken == "at once":
            return woken
        rest = set(self.others)
        with members(self.broker.bootstrap, self.place.settings.group) as count:
            self.fleet.until(lambda: count() == len(rest), "its session has timed out")
        if woken == "late":
            everything = list(range(self.place.partitions))
            self.fleet.until(
                lambda: sorted(p for slot in rest for p in owned(self.fleet.workers[slot])) == everything,
                "the others have taken over",
            )
            self.fleet.works_off()
        return woken

    def wake(self, woken: str) -> None:
        zombie = self.zombie
        zombie.signal(signal.SIGCONT)
        if woken != "at once":
            self.fleet.rejoins(ZOMBIE, self._taken)
        self.fleet.shared_out()
        # Nothing was torn: only who mixes what is of two moments may think so.
        assert "position_settled" not in zombie.err(), zombie.last_words()

    def _stop(self) -> None:
        zombie = self.zombie
        zombie.signal(signal.SIGSTOP)
        until(lambda: zombie.code is not None or is_stopped(zombie.pid), PATIENCE_S, "it is stopped")
        self._taken = len(taken_over(zombie))
        self._stopped.set()

    def _first(self, point: Point) -> Callable[[Request], bool]:
        """The first request of this kind after the worker has asked for the committed positions."""
        names = self._names(point.topic) if point.topic else ()
        asked = threading.Event()

        def wanted(request: Request) -> bool:
            if request.is_a(Kind.OFFSET_FETCH):
                asked.set()
            named = not names or any(name in request.frame for name in names)
            return asked.is_set() and request.is_a(point.kind) and named

        return wanted

    def _names(self, topic: str) -> tuple[bytes, bytes]:
        """A topic as requests name it: its name, or its id."""
        found = next(each for name, each in self.place.log.describe().items() if name == topic)
        assert found is not None
        return found.name.encode(), uuid.UUID(found.id).bytes


def is_stopped(pid: int) -> bool:
    """Whether all of the process stands still (SIGSTOP takes a moment)."""
    tasks = [each / "stat" for each in Path(f"/proc/{pid}/task").iterdir()]
    return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in tasks)
