"""Brokers that go away, groups that change, limits that pass: each ends in an error with a name."""

import threading
import time
from typing import Any

import pytest
from kafka import KafkaAdminClient

from service.core.records import Outgoing, Position
from service.log.kafka import KafkaLog, transact
from service.log.kafka.watchdog import Watchdog
from service.log.protocol import Refused, StaleGeneration, TransactionFailed, Unreachable
from tests.contract.worker import PATIENCE_S, example, values
from tests.kafka.broker import Broker

RECORDS = [Outgoing("predictions", 0, b"k", b"%d" % n) for n in range(3)]


def test_a_killed_broker_leaves_whole_transactions(open_log, broker: Broker, start) -> None:
    """Killed between transactions and started again: what was committed is there once, and work goes on."""
    log = open_log(broker.bootstrap)
    log.create_topics(2, {})
    log.append(example(0, b"%d" % n) for n in range(4))
    worker = start(log)
    worker.take(4)
    worker.commit(RECORDS)
    broker.restart()

    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            worker.start()
            worker.commit([Outgoing("predictions", 0, b"k", b"after")])
            break
        except (StaleGeneration, TransactionFailed, Unreachable):
            assert time.monotonic() < deadline

    assert values(log, "predictions", 0) == [b"0", b"1", b"2", b"after"]
    assert worker.session.committed([0]) == {0: Position(4, 0)}


def test_a_commit_without_an_answer_is_whole_or_absent(open_log, broker: Broker, start, monkeypatch) -> None:
    """The broker hangs at the very commit: after `committed`, outputs and position tell the same."""
    monkeypatch.setattr(transact, "COMMIT_S", 1)
    monkeypatch.setattr(transact, "ABORT_S", 1)
    log = open_log(broker.bootstrap)
    log.create_topics(2, {})
    worker = start(log)
    wait = transact.Writer._wait
    wakes = threading.Timer(4, broker.resume)

    def hang(self: Any, result: Any, seconds: float, what: str) -> None:
        if what == "the commit" and not wakes.is_alive():
            broker.pause()
            wakes.start()
        wait(self, result, seconds, what)

    with monkeypatch.context() as patched:
        patched.setattr(transact.Writer, "_wait", hang)
        with pytest.raises(TransactionFailed):
            worker.commit(RECORDS)
    wakes.join()

    position = worker.session.committed([0])[0]
    assert len(values(log, "predictions", 0)) == (0 if position is None else len(RECORDS))


def test_an_open_transaction_is_waited_for_and_named(make_log, start) -> None:
    """A read up to the high watermark does not end below it: it fails, naming topic and partition."""
    log = make_log()
    producer = log._connection.transactional("someone-else")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(log._names.to_broker["updates"], b"open", partition=1)
        producer.flush()

        with pytest.raises(Unreachable, match=r"updates-1.*a transaction is open"):
            list(log.read("updates", 1, 0, wait_s=0.5))

        producer.abort_transaction()
        assert list(log.read("updates", 1, 0)) == []
    finally:
        producer.close()


def test_a_changed_partition_count_is_refused(make_log, start) -> None:
    """Keys would move to other partitions: the session stops, naming the counts."""
    log: KafkaLog = make_log(metadata_max_age_ms=200)
    worker = start(log)
    admin = KafkaAdminClient(bootstrap_servers=log._connection.servers)
    try:
        admin.create_partitions({log._names.to_broker["examples"]: 3})
    finally:
        admin.close()

    deadline = time.monotonic() + PATIENCE_S
    with pytest.raises(Refused, match=r"examples 3, .*labels 2, at start 2"):
        while time.monotonic() < deadline:
            worker.session.poll(0.1)


def test_the_watchdog_barks_once_at_what_does_not_return() -> None:
    """It names the call; one that returned in time is left alone."""
    heard, barked = [], threading.Event()

    def bark(what: str) -> None:
        heard.append(what)
        barked.set()

    watchdog = Watchdog(bark)
    with watchdog.limit(60, "quick"):
        pass
    with watchdog.limit(0, "stuck"):
        assert barked.wait(PATIENCE_S)
    watchdog.close()

    assert heard == ["stuck"]
