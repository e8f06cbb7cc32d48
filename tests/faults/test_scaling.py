"""Workers come and go under load: 1, 2, 4 and 2 again share the partitions and hold one model."""

import time
from functools import partial

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.recount import folded
from tests.faults.support.stream import SETTINGS, stream

RULES = ("batch.max_records=500", "checkpoint.every=0.5")
PIECE = sized(20, 200)
"""Records sent at a time under load."""
STAGES = (("one",), ("one", "two"), ("one", "two", "three", "four"), ("two", "four"))
"""The slots at work in each stage."""


def test_one_two_four_and_two_workers_hold_one_model(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """Each change comes under load. Whenever everything is worked off, all replicas are what the log's updates come
    to, to the bit; each example is predicted once; the audit agrees."""
    records = stream(examples(4_000, 100_000), chance_of("scaling").randrange(2**32))
    place = on_kafka(*SETTINGS, *RULES)
    feed, fleet = Feed(place, records), Fleet(place)
    share = len(records) // len(STAGES)
    with Onlooker(kafka_bootstrap, f"{prefix}predictions") as onlooker:
        for number, slots in enumerate(STAGES):
            began, before, half = time.monotonic(), feed.sent, feed.sent + share // 2
            if leaving := [slot for slot in fleet.workers if slot not in slots]:
                feed.to(half)  # they leave amid a backlog
                fleet.stop(*leaving)
            fleet.start(*(slot for slot in slots if slot not in fleet.workers))
            fleet.shared_out(meanwhile=partial(trickle, feed, half))
            shared_s, under = time.monotonic() - began, feed.sent - before

            fleet.works_off()
            began, before = time.monotonic(), feed.sent
            feed.to((number + 1) * share)
            fleet.works_off()
            rate = (feed.sent - before) / (time.monotonic() - began)
            print(
                f"{len(slots)} workers: shared out after {shared_s:.1f} s under {under} records; then "
                f"{rate:.0f} records/s, sending included"
            )
            fleet.meets()
            fleet.agrees(folded(place.log), *slots)
        feed.rest()
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
    ids = {record_id for record_id in found.predictions if not record_id.startswith("probe-")}
    assert ids == {f"case-{number}" for number in range(examples(4_000, 100_000))}


def trickle(feed: Feed, most: int) -> None:
    """Send a few records, up to `most` of the stream."""
    if feed.sent < most:
        feed.more(PIECE)
