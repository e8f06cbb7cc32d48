"""A worker that was paused amid a transaction wakes up when others have gone on: nothing it wrote counts."""

import signal
import time
from random import Random

import pytest
from kafka import TopicPartition

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.deployment import PATIENCE_S
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet, members, owned, taken_over
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.open_transactions import Transactions
from tests.faults.support.stream import SETTINGS, stream

RULES = (
    "batch.max_records=50",
    "checkpoint.every=0.5",
    "kafka.session_timeout_ms=2000",
    "kafka.heartbeat_interval_ms=300",
)
SOON = """
from mistakebound.log.kafka import timeouts
timeouts.TRANSACTION_MS, timeouts.DELIVERY_MS, timeouts.REQUEST_MS = 3_000, 2_500, 2_400
"""
"""The broker ends a silent worker's transaction after 3 s instead of 10 (both clients check that a request, and
librdkafka that a batch, is given up before)."""
FED = 50
SURE_S = 0.5
"""Longer than a broker takes to end a transaction of which it has been told."""

ROUNDS = (("one", "a transaction", "early"), ("two", "a transaction", "late"), ("one", "idle", "late"))
"""Who is stopped, amid what, and when it wakes."""

Span = dict[TopicPartition, tuple[int, int]]


@pytest.mark.usefixtures("by_each_client")
def test_what_a_paused_worker_wrote_is_never_seen(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """Stopped for longer than its session lasts, amid a transaction or while idle, and woken while that transaction
    is still open, or after another worker has taken its partitions over and done the work. It joins again or ends
    as it may, and goes on with what the others did. No record of its transaction is ever visible, unless it was
    stopped between handing its positions to the group and the commit, and woken before anybody took over: who does
    waits for that commit, which is then whole."""
    chance = chance_of("zombie")
    records = stream(examples(2_500, 30_000), chance.randrange(2**32))
    place = on_kafka(*SETTINGS, *RULES)
    feed, fleet = Feed(place, records), Fleet(place)
    rounds = ROUNDS * sized(1, 4)
    begun: list[tuple[Span, set[tuple[TopicPartition, int]], str]] = []
    with (
        Onlooker(kafka_bootstrap, f"{prefix}predictions") as onlooker,
        Transactions(kafka_bootstrap, prefix) as transactions,
    ):
        feed.to(len(records) // 4)
        fleet.start("one")  # woken early, it needs a transaction that stays open for the full time
        fleet.start("two", first=sized(SOON, ""))
        fleet.shared_out()
        for number, (zombie, amid, woken) in enumerate(rounds):
            worker = fleet.workers[zombie]
            if amid == "idle":
                fleet.works_off()
                worker.signal(signal.SIGSTOP)
            feed.to(round((0.3 + 0.6 * (number + 1) / len(rounds)) * len(records)))
            if amid == "a transaction":
                span = paused_amid_a_transaction(fleet, feed, zombie, transactions, chance)
                begun.append((span, transactions.written(span), woken))
                assert begun[-1][1], "the transaction holds records"
            before = len(taken_over(worker))
            others_go_on(fleet, zombie, kafka_bootstrap, woken)
            worker.signal(signal.SIGCONT)
            fleet.rejoins(zombie, before)
            fleet.shared_out()
            print(f"{zombie}, stopped amid {amid}, woken {woken}, is back")
        feed.rest()
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
        for span, written, woken in begun:
            assert transactions.committed(span) in ([set(), written] if woken == "early" else [set()])
        assert transactions.open_below() == {}


def paused_amid_a_transaction(
    fleet: Fleet, feed: Feed, slot: str, transactions: Transactions, chance: Random
) -> Span:
    """Stop the worker while it has a transaction open; returns the offsets between which it wrote.

    More is fed all the time: it may have done what there was before it is ever met at work.
    """
    worker, deadline = fleet.workers[slot], time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        worker.signal(signal.SIGSTOP)
        before = transactions.open_below()
        mine = {place: span for place, span in before.items() if place.partition in owned(worker)}
        if mine:
            time.sleep(SURE_S)
            now = transactions.open_below()
            if all(now.get(place) == span for place, span in mine.items()):
                return mine
        worker.signal(signal.SIGCONT)
        feed.more(FED)
        time.sleep(chance.uniform(0.01, 0.05))
    raise AssertionError(f"never stopped amid a transaction: {worker.last_words()}")


def others_go_on(fleet: Fleet, zombie: str, bootstrap: str, woken: str) -> None:
    """Wait until the group has given the zombie up; or until the other worker has done all there is to do."""
    (other,) = (each for slot, each in fleet.workers.items() if slot != zombie)
    if woken == "early":
        with members(bootstrap, fleet.place.settings.group) as count:
            fleet.until(lambda: count() == 1, "its session has timed out")
    else:
        fleet.until(lambda: len(owned(other)) == fleet.place.partitions, "the other has taken over")
        fleet.works_off()
