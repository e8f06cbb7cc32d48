"""Workers come and go under load: 1, 2, 4 and 2 again share the partitions and hold one model."""

import time

from tests.faults.chance import chance_of, examples
from tests.faults.conftest import Deploy
from tests.faults.feed import Feed
from tests.faults.fleet import Fleet
from tests.faults.onlooker import Onlooker
from tests.faults.recount import folded
from tests.faults.stream import SETTINGS, stream

RULES = ("batch.max_records=500", "checkpoint.every=0.5")
STAGES = (("one",), ("one", "two"), ("one", "two", "three", "four"), ("two", "four"))
"""The slots at work in each stage."""


def test_one_two_four_and_two_workers_hold_one_model(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """Each change comes while there is work. Whenever everything is worked off, all replicas are what the log's
    updates come to, to the bit; each example is predicted once; the audit agrees."""
    records = stream(examples(3_000, 100_000), chance_of("scaling").randrange(2**32))
    place = on_kafka(*SETTINGS, *RULES)
    feed, fleet = Feed(place, records), Fleet(place)
    with Onlooker(kafka_bootstrap, f"{prefix}predictions") as onlooker:
        for number, slots in enumerate(STAGES):
            begun, before = time.monotonic(), place.sent()
            feed.to(len(records) * (2 * number + 1) // (2 * len(STAGES)))
            fleet.stop(*(slot for slot in fleet.workers if slot not in slots))
            fleet.start(*(slot for slot in slots if slot not in fleet.workers))
            fleet.shared_out()
            shared = time.monotonic()
            fleet.works_off()
            moved = place.sent() - before

            began, before = time.monotonic(), place.sent()
            feed.to(len(records) * (2 * number + 2) // (2 * len(STAGES)))
            fleet.works_off()
            rate = (place.sent() - before) / (time.monotonic() - began)
            fleet.meets()
            fleet.agrees(folded(place.log), *slots)
            print(
                f"{len(slots)} workers: shared out after {shared - begun:.1f} s under {moved} records; "
                f"then {rate:.0f} records/s, theirs and ours of sending them"
            )
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
    ids = {identity for identity in found.predictions if not identity.startswith("probe-")}
    assert ids == {f"case-{number}" for number in range(examples(3_000, 100_000))}
