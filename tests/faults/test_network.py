"""The network between the workers and their broker: slow, narrow, silent in one direction or both, and reset."""

import random
import time

import pytest

from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.open_transactions import open_below
from tests.faults.support.stream import SETTINGS, stream
from tests.faults.test_broker_away import ready
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy, Weather

pytestmark = pytest.mark.kafka

READY_S = 15.0
"""After the network is well again."""
HARDEST = "nothing"
SPELLS = ("slow", "narrow", "no requests", "no answers", "resets", HARDEST)
HURRIED = """
from mistakebound.log.kafka import timeouts
timeouts.REQUEST_MS, timeouts.DELIVERY_MS = 1_000, 1_500
"""
"""What is sent must be acknowledged sooner than it would have to be."""
LASTS_S = {HARDEST: (12, sized(13, 20))}
"""Longer than any transaction that it interrupts: each must be got over."""


@pytest.mark.usefixtures("by_each_client")
def test_a_bad_network_tears_nothing_and_is_got_over(
    proxied: tuple[Broker, Proxy], prefix: str, children: Children
) -> None:
    """300 ms of delay, 20 kB/s, 5 to 20 s in which requests, answers or both do not arrive, and connections that are
    reset: no worker ends, all are ready within 15 s of the end, and nothing is lost or doubled."""
    broker, proxy = proxied
    chance = chance_of("network")
    spells = list(sized([*chance.sample(SPELLS[:-1], 2), HARDEST], SPELLS * 2))
    records = stream(examples(4_000, 30_000), chance.randrange(2**32))
    with (
        Deployment(
            f"kafka://{broker.bootstrap}", prefix, children, *SETTINGS, "batch.max_records=50"
        ) as place,
        Onlooker(broker.bootstrap, f"{prefix}predictions") as onlooker,
    ):
        place.options[1] = f"kafka://127.0.0.1:{proxy.port}"
        feed, fleet = Feed(place, records), Fleet(place, may_end=())
        fleet.start("one", "two")
        feed.to(len(records) // 10)
        fleet.shared_out()
        for number, spell in enumerate(spells, 1):
            feed.to(round(0.9 * number / len(spells) * len(records)))
            lasts_s = chance.uniform(*LASTS_S.get(spell, (5, sized(8, 20))))
            suffer(proxy, spell, lasts_s, chance)
            back, before = time.monotonic(), place.consumed()
            fleet.until(
                lambda: all(ready(worker)["ready"] for worker in fleet.workers.values()),
                f"all are ready after {lasts_s:.0f} s of {spell}",
                READY_S,
            )
            print(f"{spell} for {lasts_s:.1f} s; all ready {time.monotonic() - back:.1f} s later")
            feed.more(50)
            fleet.reaches(before + 1)
        feed.rest()
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
    assert open_below(broker.bootstrap, prefix) == {}


def test_a_backlog_gets_through_a_line_that_is_too_narrow_for_a_whole_step(
    proxied: tuple[Broker, Proxy], prefix: str, children: Children
) -> None:
    """Of the default size it could not be sent within a transaction's time: steps get smaller, and no worker gives up."""
    broker, proxy = proxied
    records = stream(examples(700, 8_000), chance_of("narrow line").randrange(2**32))
    with Deployment(f"kafka://{broker.bootstrap}", prefix, children, *SETTINGS) as place:
        place.options[1] = f"kafka://127.0.0.1:{proxy.port}"
        Feed(place, records).rest()
        proxy.weather = Weather(bytes_per_s=sized(50_000, 40_000), narrow=frozenset({"requests"}))
        fleet = Fleet(place, may_end=())
        fleet.start("one", first=sized(HURRIED, ""))
        fleet.works_off()
        proxy.weather = Weather()
        failed = fleet.workers["one"].err().count('"event": "rebuilding"')
        print(f"{failed} transactions failed")
        assert failed > 0
        fleet.prove()


def suffer(proxy: Proxy, spell: str, lasts_s: float, chance: random.Random) -> None:
    """Have this weather for so long, and good weather afterwards."""
    match spell:
        case "slow":
            proxy.weather = Weather(delay_s=0.3)
        case "narrow":
            proxy.weather = Weather(bytes_per_s=20_000)
        case "no requests":
            proxy.weather = Weather(silent=frozenset({"requests"}))
        case "no answers":
            proxy.weather = Weather(silent=frozenset({"answers"}))
        case "nothing":
            proxy.weather = Weather(silent=frozenset({"requests", "answers"}))
        case "resets":
            end = time.monotonic() + lasts_s
            while time.monotonic() < end:
                proxy.reset()
                time.sleep(chance.uniform(0.2, 2))
            return
    time.sleep(lasts_s)
    proxy.weather = Weather()
