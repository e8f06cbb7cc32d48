"""A worker that works for long while another one comes and goes: it takes no more of its machine than it did."""

import os
import time
from collections.abc import Iterator
from itertools import count, islice

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mistakebound.core.records import Outgoing
from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, sized
from tests.faults.support.children import ENVIRON, Child
from tests.faults.support.deployment import Deployment, page
from tests.faults.support.fleet import Fleet, taken_over
from tests.faults.support.footprint import Footprint, footprint, slope
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.stream import SETTINGS, stream

REMEMBER = 500
RULES = (f"labels.remember={REMEMBER}", "batch.max_records=100", "checkpoint.every=1")
"""Everything that is held is at its limit soon."""
MINUTES = float(os.environ.get("MISTAKEBOUND_FAULTS_MINUTES") or 30)
PACE = sized(400, 60)
"""Examples a second: a low load for the long run."""
PIECES_A_SECOND = sized(20, 4)
ROUND_S = sized(0.8, 4)
"""So long it works before, and so long after, the other one is gone. A heap comes to rest after some forty takeovers: most
of them must lie in the warm-up."""
ROUNDS = sized(3, None)
"""None: until the time is over."""
NO_CACHES = "glibc.malloc.tcache_count=0"
"""glibc keeps up to 0.24 MB of freed blocks for each thread. These caches fill in hours, by 0.6 MB in the first one, and hide
what is held longer."""
WARM_UP = sized(1, 0.5)
"""Rounds that are not compared; of the full form, this share of them."""
FILES_MORE, THREADS_MORE = 2, 1
"""A connection may be on its way to be closed."""
MOST_RISE_KIB = 24 * 1_024
MOST_RISE_KIB_AN_HOUR = 1_024


def test_a_worker_that_works_on_takes_no_more_of_its_machine(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each round it works, gets the other's partitions as that one is stopped or killed, and loses them to its
    successor. Open files and threads stay as many, and its memory as large; nothing is lost or doubled."""
    monkeypatch.setitem(ENVIRON, "GLIBC_TUNABLES", NO_CACHES)
    place = on_kafka(*SETTINGS, *RULES)
    fleet, taken = Fleet(place), list[tuple[float, Footprint]]()
    length = round(PACE * (MINUTES * 60 if ROUNDS is None else 2 * ROUND_S * ROUNDS))
    records = iter(stream(length, chance_of("soak").randrange(2**32)))
    begun = time.monotonic()
    with Onlooker(kafka_bootstrap, f"{prefix}predictions") as onlooker:
        fleet.start("one", "two")
        fleet.shared_out()
        worker = fleet.workers["one"]
        for number in count() if ROUNDS is None else range(ROUNDS):
            works(place, records)
            before = len(taken_over(worker))
            if number % 2:
                fleet.kill("two")
            else:
                fleet.stop("two")
            fleet.start("two")
            fleet.rejoins("one", before)
            fleet.shared_out()
            works(place, records)
            fleet.works_off()
            assert fleet.workers["one"] is worker, "the one that is watched was started again"
            hour = (time.monotonic() - begun) / 3600
            taken.append((hour, at_rest(worker)))
            print(f"{hour * 60:.1f} min: {taken[-1][1]}, predicted within {latency(worker):g} s (99 %)")
            if ROUNDS is None and hour * 60 >= MINUTES:
                break
        found = fleet.prove(REMEMBER)
        onlooker.saw_once(set(found.predictions))
    is_flat(taken[WARM_UP if ROUNDS else round(WARM_UP * len(taken)) :])


def works(place: Deployment, records: Iterator[Outgoing]) -> None:
    """Send at the pace for a while, in small pieces, each record with the time of its sending."""
    end = time.monotonic() + ROUND_S
    while time.monotonic() < end:
        began = time.monotonic()
        now_ms = round(time.time() * 1000)
        piece = islice(records, 2 * PACE // PIECES_A_SECOND)
        place.send([record._replace(timestamp_ms=now_ms) for record in piece])
        time.sleep(max(0.0, 1 / PIECES_A_SECOND - (time.monotonic() - began)))


def at_rest(worker: Child) -> Footprint:
    """The least of some looks: what comes and goes does not count."""
    looks = []
    for _ in range(5):
        looks.append(footprint(worker.pid))
        time.sleep(0.1)
    return Footprint(*(min(each) for each in zip(*looks, strict=True)))


def is_flat(taken: list[tuple[float, Footprint]]) -> None:
    """Later footprints are no larger than the first."""
    first, last = taken[0][1], taken[-1][1]
    told = "\n".join(f"{hour * 60:.1f} min: {each}" for hour, each in taken)
    assert max(each.files for _, each in taken) <= first.files + FILES_MORE, told
    assert max(each.threads for _, each in taken) <= first.threads + THREADS_MORE, told
    assert last.rss_kib - first.rss_kib <= MOST_RISE_KIB, told
    if ROUNDS is None:
        rise = slope([(hour, each.rss_kib) for hour, each in taken])
        print(f"memory rises by {rise:.0f} KiB an hour, over {len(taken)} rounds")
        assert rise < MOST_RISE_KIB_AN_HOUR, told


def latency(worker: Child) -> float:
    """An upper bound in s of 99 % of the times from an example's record to its prediction."""
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for family in text_string_to_metric_families(page(worker).decode())
        for sample in family.samples
        if sample.name == "mistakebound_prediction_latency_seconds_bucket"
    ]
    total = max((value for _, value in buckets), default=0.0)
    return min((bound for bound, value in buckets if value >= 0.99 * total), default=0.0)
