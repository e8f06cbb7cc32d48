"""A worker that starts beneath another one's open transaction waits for it, and not for ever."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaProducer

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.deployment import PATIENCE_S, total
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet, members, taken_over, updates_of
from tests.faults.support.open_transactions import Transactions
from tests.faults.support.stream import SETTINGS, stream

RULES = ("batch.max_records=100", "checkpoint.every=0.5")
IMPATIENT = "from mistakebound.worker import interruptible; interruptible.WAIT_S = 1.5"
"""A read that makes no progress is given up after 1.5 s instead of 30."""
UNREACHABLE = 4


@contextmanager
def open_transaction(bootstrap: str, topic: str, partition: int) -> Iterator[None]:
    """A transaction of somebody else's with one record, open as long as the block; then it is aborted."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"{topic}-stranger", transaction_timeout_ms=300_000
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"never committed", partition=partition)
        producer.flush(10)
        yield
        producer.abort_transaction()
    finally:
        producer.close(timeout=5)


def test_a_third_worker_waits_for_an_open_transaction_below_committed_updates(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """While it is open the third worker takes nothing over; when it has ended it starts with every update that was
    committed above it. Where it does not end, a starting worker gives up before its deadline and says why."""
    chance = chance_of("open transaction")
    records = stream(examples(1_200, 20_000), chance.randrange(2**32))
    place = on_kafka(*SETTINGS, *RULES)
    feed, fleet = Feed(place, records), Fleet(place)
    held = chance.randrange(place.partitions)
    with Transactions(kafka_bootstrap, prefix) as transactions:
        feed.to(len(records) // 3)
        fleet.start("one", "two")
        fleet.shared_out()
        fleet.works_off()
        with open_transaction(kafka_bootstrap, f"{prefix}updates", held):
            before = updates_of(place)
            feed.to(2 * len(records) // 3)
            fleet.works_off()
            known = updates_of(place)
            assert known[held] > before[held], "updates are committed above the open transaction"
            fleet.start("three")
            with members(kafka_bootstrap, place.settings.group) as count:
                fleet.until(lambda: count() == 3, "the third has joined")
            fleet.until(
                lambda: total(fleet.workers["three"], "state", mistakebound_state="restoring") == 1,
                "it takes over",
            )
            time.sleep(sized(2, 10))  # so long it must wait at least
            assert taken_over(fleet.workers["three"]) == [], "it took over below an open transaction"
        fleet.shared_out()
        started_with = taken_over(fleet.workers["three"])[0]["updates"]
        assert all(had >= need for had, need in zip(started_with, known, strict=True)), (started_with, known)
        feed.rest()
        fleet.works_off()

        with open_transaction(kafka_bootstrap, f"{prefix}updates", held):
            hopeless = place.worker("worker.slot=four", first=sized(IMPATIENT, ""))
            assert hopeless.ends(PATIENCE_S) == UNREACHABLE, hopeless.last_words()
            assert f"{prefix}updates-{held}" in hopeless.err(), hopeless.last_words()
            assert "a transaction is open below it" in hopeless.err(), hopeless.last_words()
        found = fleet.prove()
        assert len(found.predictions) >= examples(1_200, 20_000)
        assert transactions.open_below() == {}
