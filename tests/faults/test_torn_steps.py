"""Copies of requests arrive late, of any kind and at any moment, while workers do their work on a long stream."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.children import Children, until
from tests.faults.support.deployment import Deployment
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.open_transactions import open_below
from tests.faults.support.stream import SETTINGS, stream
from tests.log.support.breaking import evict
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy
from tests.log.support.requests import Kind, Request

pytestmark = pytest.mark.kafka

LOST: dict[str, Callable[[Request], bool]] = {
    "partitions": lambda request: request.is_a(Kind.ADD_PARTITIONS),
    "group": lambda request: request.is_a(Kind.ADD_OFFSETS),
    "positions": lambda request: request.is_a(Kind.OFFSETS),
    "commit": lambda request: request.is_a(Kind.END) and request.commits,
    "abort": lambda request: request.is_a(Kind.END) and not request.commits,
}
ARRIVES: dict[str, Callable[[Request], bool]] = {
    "before outputs": lambda request: request.is_a(Kind.PRODUCE),
    "after outputs": lambda request: request.is_a(Kind.ADD_OFFSETS),
    "before positions": lambda request: request.is_a(Kind.OFFSETS),
    "before the end": lambda request: request.is_a(Kind.END),
}
NOTICED_S = 20.0


@pytest.mark.usefixtures("by_each_client")
def test_late_copies_of_requests_tear_no_step(
    proxied: tuple[Broker, Proxy], prefix: str, children: Children
) -> None:
    """Of every kind of request of a transaction, at every moment of a later one, of commits and of aborts: no worker
    ends, the recount, `status` and the audit agree, and who looked on saw each prediction once."""
    broker, proxy = proxied
    chance = chance_of("torn steps")
    rounds = [(lost, arrives) for lost in LOST for arrives in ARRIVES] * sized(1, 3)
    chance.shuffle(rounds)
    del rounds[sized(8, len(rounds)) :]
    records = stream(examples(3_000, 40_000), chance.randrange(2**32))
    url = f"kafka://{broker.bootstrap}"
    with (
        Deployment(url, prefix, children, *SETTINGS, "batch.max_records=50") as place,
        Onlooker(broker.bootstrap, f"{prefix}predictions") as onlooker,
    ):
        place.options[1] = f"kafka://127.0.0.1:{proxy.port}"
        feed, fleet = Feed(place, records), Fleet(place)
        fleet.start("one", "two")
        feed.to(len(records) // 10)
        fleet.shared_out()
        arrived = 0
        for number, (lost, arrives) in enumerate(rounds):
            arrived += torn(proxy, fleet, feed, lost, arrives, chance)
            feed.to(round((0.1 + 0.8 * number / len(rounds)) * len(records)))
        feed.rest()
        assert all(worker.code is None for worker in fleet.workers.values()), "a worker ended"
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
        print(
            f"{arrived} of {len(rounds)} copies arrived within a later transaction; {found.updates} updates"
        )
        assert arrived > len(rounds) // 2
    assert open_below(broker.bootstrap, prefix) == {}


def torn(proxy: Proxy, fleet: Fleet, feed: Feed, lost: str, arrives: str, chance: random.Random) -> bool:
    """Lose one request and deliver its copy later; whether both happened while there was work."""
    proxy.keep_back(LOST[lost])
    with suppress(AssertionError):
        until(lambda: lose(proxy, fleet, feed, lost, chance), NOTICED_S, f"a request is lost: {lost}")
    if not proxy.held:
        proxy.keep_back(lambda request: False)
        return False
    proxy.deliver_before(ARRIVES[arrives])
    with suppress(AssertionError):
        until(lambda: feed.more(20) or not proxy.held, NOTICED_S, f"it arrives {arrives}")
    came = not proxy.held
    proxy.deliver()
    return came


def lose(proxy: Proxy, fleet: Fleet, feed: Feed, lost: str, chance: random.Random) -> bool:
    """Give the workers something to do; an abort needs a group that has moved on meanwhile."""
    feed.more(20)
    if lost == "abort" and chance.random() < 0.1:
        evict(fleet.place.log)  # type: ignore[arg-type]
    return bool(proxy.held)
