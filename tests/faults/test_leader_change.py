"""Three brokers, one of which dies while it leads and coordinates: each example is predicted once all the same."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from mistakebound.core.records import TOPICS
from tests.faults.support.chance import chance_of, examples, is_full, sized
from tests.faults.support.children import Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.open_transactions import open_below
from tests.faults.support.stream import SETTINGS, stream
from tests.log.support.cluster import Cluster

pytestmark = pytest.mark.kafka
SMALL_STEPS = "batch.max_records=50"
PREFIX = "lead."
HASTY = "from mistakebound.log.kafka import timeouts as s; s.FLUSH_S = s.OFFSETS_S = s.COMMIT_S = 3"
"""A transaction is given up before other brokers lead: so it must be got over, not just waited for."""
STEP = 300
"""Records that are consumed between two blows."""


def asked(cluster: Cluster, ask: Callable[[KafkaAdminClient], Any]) -> Any:
    """The answer of whichever broker gives one: some may be dead, and others have not heard of it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as admin:
                return ask(admin)
        except KafkaError:
            assert time.monotonic() < deadline


def coordinator(cluster: Cluster, transactional_id: str) -> int:
    """The broker that coordinates these transactions."""
    for number in cluster.numbers:
        known = asked(cluster, lambda admin, number=number: admin.list_transactions(broker_ids=[number]))
        if transactional_id in str(known):
            return number
    raise AssertionError(f"nobody coordinates {transactional_id}")


def partitions(cluster: Cluster) -> list[tuple[str, dict[str, Any]]]:
    """Topic and description of each partition of ours."""
    names = [PREFIX + topic for topic in TOPICS]
    described = asked(cluster, lambda admin: admin.describe_topics(names))
    return [(topic["name"], partition) for topic in described for partition in topic["partitions"]]


def led_by(cluster: Cluster, number: int) -> set[str]:
    """Those of our topics of which a broker leads partitions."""
    return {name for name, partition in partitions(cluster) if partition["leader_id"] == number}


def in_step(cluster: Cluster) -> bool:
    """Whether every replica of our topics is in step again."""
    return all(len(partition["isr_nodes"]) == 3 for _, partition in partitions(cluster))


def leads_again(cluster: Cluster) -> bool:
    """Whether every broker leads what it is preferred for; a broker that was away is not by itself, for minutes."""
    names = [PREFIX + topic for topic in TOPICS]
    asked(cluster, lambda admin: admin.elect_leaders(0, names, raise_errors=False))
    return all(led_by(cluster, number) == set(names) for number in cluster.numbers)


def test_brokers_that_lead_and_coordinate_may_die(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The one that coordinates the worker's transactions, and leads partitions of every topic, is killed amid
    work. In full: each broker in turn, killed and stopped cleanly, with two workers."""
    chance = chance_of("leader change")
    children = Children(tmp_path_factory.mktemp("lead"))
    records = stream(examples(800, 80_000), chance.randrange(2**32))
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        url = f"kafka://{cluster.bootstrap}"
        with Deployment(url, PREFIX, children, *SETTINGS, SMALL_STEPS) as place:
            try:
                struck(cluster, place, Feed(place, records))
            finally:
                children.kill()
        assert open_below(cluster.bootstrap, PREFIX) == {}


def struck(cluster: Cluster, place: Deployment, feed: Feed) -> None:
    fleet = Fleet(place)
    fleet.start("slot", first=sized(HASTY, ""))
    fleet.start(*sized((), ("other",)))
    fleet.shared_out()
    worker = fleet.workers["slot"]
    feed.rest()
    fleet.reaches(STEP)
    id_of = f"{place.settings.group}-slot"
    blows = [("kill", 0)] if not is_full() else [(how, n) for n in range(3) for how in ("kill", "stop")]
    for how, turn in blows:
        victim = (coordinator(cluster, id_of) + turn - 1) % 3 + 1
        assert led_by(cluster, victim) == {PREFIX + topic for topic in TOPICS}
        before = place.consumed()
        began = time.monotonic()
        getattr(cluster, how)(victim)
        fleet.until(lambda victim=victim: not led_by(cluster, victim), "others lead its partitions")
        fleet.reaches(min(max(before, place.consumed()) + STEP, place.sent()))
        print(f"{how} of broker {victim}: {STEP} further records {time.monotonic() - began:.1f} s later")
        if is_full():
            cluster.start(victim)
            until(lambda: in_step(cluster), PATIENCE_S, "its replicas are in step")
            until(
                lambda: leads_again(cluster), PATIENCE_S, "each broker leads partitions of every topic again"
            )
    if not is_full():
        assert fleet.workers["slot"] is worker, (
            f"it ended, and its supervisor had to help: {worker.last_words()}"
        )
    print(*(line for line in worker.err().splitlines() if "rebuilding" in line or "log_unreachable" in line))
    found = fleet.prove()
    assert len(found.predictions) >= examples(800, 80_000)
