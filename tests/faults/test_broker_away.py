"""The broker hangs, then it is gone, then it is back: what its workers do meanwhile, and that nothing is lost."""

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment, address_of
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.footprint import Footprint, footprint
from tests.faults.support.open_transactions import open_below
from tests.faults.support.recount import Recount
from tests.faults.support.stream import SETTINGS, stream
from tests.log.support.broker import Broker

pytestmark = pytest.mark.kafka
SMALL_STEPS = "batch.max_records=20"
DRAIN_S = sized(2.0, 10.0)
"""What a worker may take to stop: in the short form less than it would by itself."""
HASTY = f"from mistakebound.worker import process; process.DRAIN_S = {DRAIN_S}"
RESUMES_S = sized(60.0, 30.0)
GROWN_KIB = 16 * 1024
"""What client and interpreter may take for the failures that they report. Buffers that grow take more."""
DRAIN_FAILED, INTERRUPTED = 7, 130


@dataclass(frozen=True)
class Away:
    """What was seen, in the order in which it happened."""

    stopped: Child
    """Told to stop while the broker hung."""
    interrupted: Child
    """Told twice."""
    health: dict[str, Any]
    """Of the worker that stays, while the broker was gone."""
    before: Footprint
    during: Footprint
    resumed_s: float
    stayed: Child
    found: Recount
    audited: Any
    left_open: Any


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Away]:
    chance = chance_of("broker away")
    records = stream(examples(800, 30_000), chance.randrange(2**32))
    children = Children(tmp_path_factory.mktemp("away"))
    try:
        with Broker(tmp_path_factory.mktemp("broker")) as broker:
            url = f"kafka://{broker.bootstrap}"
            with Deployment(url, "away.", children, *SETTINGS, SMALL_STEPS) as place:
                yield hung_gone_and_back(broker, place, Feed(place, records))
    finally:
        children.kill()


def hung_gone_and_back(broker: Broker, place: Deployment, feed: Feed) -> Away:
    fleet = Fleet(place)
    fleet.start("slot", "interrupted")
    fleet.start("stopped", first=HASTY)
    fleet.shared_out()
    feed.to(len(feed.records) // 2)
    fleet.reaches(place.consumed() + 1)
    stays, stopped, interrupted = (fleet.workers[slot] for slot in ("slot", "stopped", "interrupted"))
    before = footprint(stays.pid)

    broker.pause()
    time.sleep(0.5)  # all are inside a transaction or a poll by now
    began = time.monotonic()
    stopped.signal(signal.SIGTERM)
    interrupted.signal(signal.SIGTERM)
    time.sleep(0.2)
    interrupted.signal(signal.SIGTERM)
    interrupted.ends(5)
    stopped.ends(DRAIN_S + 10)
    broker.kill()
    until(lambda: ready(stays)["reason"].startswith("the log"), PATIENCE_S, "it says what is away", stays)
    time.sleep(max(0.0, began + sized(10, 300) - time.monotonic()))
    health, during = ready(stays), footprint(stays.pid)
    broker.start()

    back = time.monotonic()
    consumed = place.consumed()
    until(lambda: place.consumed() > consumed, RESUMES_S, "it works again", stays)
    resumed_s = time.monotonic() - back
    until(lambda: ready(stays)["ready"], PATIENCE_S, "it is ready again", stays)
    print(f"worked again {resumed_s:.1f} s after the broker was back; {before}, then {during}")
    feed.rest()
    place.finish(stays)
    found = place.prove()
    audited = place.children.json("audit", "--json", *place.options)
    left = open_below(broker.bootstrap, "away.")
    return Away(stopped, interrupted, health, before, during, resumed_s, stays, found, audited, left)


def ready(worker: Child) -> dict[str, Any]:
    """What the worker's probe says."""
    try:
        with urllib.request.urlopen(f"{address_of(worker)}/readyz", timeout=10) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            body = error.read()
    told: dict[str, Any] = json.loads(body)
    return told


def test_nothing_is_lost_and_nothing_doubled(away: Away) -> None:
    """Every example is predicted once; recount, status and audit agree; no transaction is left open."""
    assert len(away.found.predictions) == examples(800, 30_000)
    assert away.audited["differences"] == {}
    assert away.left_open == {}


def test_the_worker_is_live_and_not_ready_meanwhile(away: Away) -> None:
    """A restart would not help, and nobody should wait for its predictions."""
    assert (away.health["live"], away.health["ready"]) == (True, False)
    assert away.health["reason"] == "the log does not answer; the worker goes on when it does"


def test_the_same_worker_goes_on_when_the_broker_is_back(away: Away) -> None:
    """It was not restarted, and it rebuilt without giving up."""
    assert away.stayed.code == 0
    assert away.stayed.err().count('"event": "log_unreachable"') == 1


def test_nothing_grows_while_the_broker_is_away(away: Away) -> None:
    """Neither buffers nor connections: attempts leave nothing behind."""
    assert away.during.rss_kib - away.before.rss_kib < GROWN_KIB
    assert away.during.files - away.before.files < 20
    assert away.during.threads - away.before.threads < 10


def test_a_worker_that_cannot_drain_ends_within_its_limit(away: Away) -> None:
    """With a code of its own; what it had begun counts for nothing. Given time, an idle one ends well."""
    assert away.stopped.code in sized((DRAIN_FAILED,), (0, DRAIN_FAILED)), away.stopped.last_words()


def test_a_second_signal_ends_a_worker_that_cannot_drain(away: Away) -> None:
    """It ends at once, whatever hangs."""
    assert away.interrupted.code == INTERRUPTED, away.interrupted.last_words()
