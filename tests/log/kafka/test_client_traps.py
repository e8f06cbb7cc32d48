"""Where kafka-python 3.0.12 loses, doubles or withholds records, and that the log does not.

Each trap is shown on the client itself, too: when such a test fails, upstream has mended it, and the
rule that answers it may go.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import CommitFailedError, KafkaError, OutOfOrderSequenceNumberError, UnknownBrokerIdError

from mistakebound.core.records import NAME_NOT_UTF8, Outgoing, Position, Transaction
from mistakebound.log.kafka import KafkaLog, timeouts
from mistakebound.log.kafka.kafka_python import admin, append, batches, send
from mistakebound.log.kafka.kafka_python.errors import translated
from mistakebound.log.kafka.kafka_python.make_clients import broker_partition
from mistakebound.log.protocol import Polled, StaleGeneration, TransactionFailed, Unreachable
from tests.log.support.breaking import evict, expire, lose_a_sequence_number
from tests.log.support.broker import Broker
from tests.log.support.upstream import Raw
from tests.log.support.worker import PATIENCE_S, Worker, example, values

RECORDS = [Outgoing("predictions", 0, b"k", b"%d" % n) for n in range(3)]
PAYLOADS = [record.value for record in RECORDS]


def assert_nothing_then_everything(log: KafkaLog, worker: Worker) -> None:
    """Nothing of the failed transaction is there, and the next one is there once."""
    assert worker.session.committed([0]) == {0: None}
    assert values(log, "predictions", 0) == []

    worker.commit(RECORDS)

    assert values(log, "predictions", 0) == PAYLOADS
    assert worker.session.committed([0]) == {0: Position(0, 0)}


def hook_second_batch(
    monkeypatch: pytest.MonkeyPatch, before: Any, after: Any = lambda producer: None
) -> None:
    """Once, around all but the first record of a transaction, when the first one is on the broker."""
    calls: list[str] = []

    def hooked(producer: Any, place: TopicPartition, records: Any) -> Any:
        calls.append(place.topic)
        if len(calls) != 1:
            return batches.send(producer, place, records)
        first = batches.send(producer, place, records[:1])
        producer.flush()
        before(producer)
        rest = batches.send(producer, place, records[1:])
        after(producer)
        return first + rest

    monkeypatch.setattr(send, "send", hooked)


@contextmanager
def raw_producer(log: KafkaLog, **options: Any) -> Iterator[tuple[Any, TopicPartition]]:
    """The client itself, in a transaction of its own."""
    producer = KafkaProducer(
        bootstrap_servers=log._cluster.connection.servers,
        transactional_id=f"{log._cluster.connection.group}-raw",
        **options,
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        yield producer, broker_partition(log._cluster.names, "predictions", 0)
    finally:
        append.discard(producer)


def outcome(future: Any) -> BaseException | None:
    """Wait for a send's end; its error, or None."""
    try:
        future.get(timeout=PATIENCE_S)
    except KafkaError as error:
        return error
    return None


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same order of limits, in thirds and halves: a busy machine answers within them, a test need not wait."""
    monkeypatch.setattr(timeouts, "REQUEST_MS", 1_500)
    monkeypatch.setattr(timeouts, "DELIVERY_MS", 2_000)
    monkeypatch.setattr(timeouts, "FLUSH_S", 3)


# An expired batch (c1)


def test_an_expired_batch_is_never_committed_around(make_log, start, monkeypatch) -> None:
    """A record that was given up before it was sent takes its whole transaction with it."""
    log = make_log(linger_ms=2_500)
    worker = start(log)
    hook_second_batch(monkeypatch, lambda producer: None, expire)

    with pytest.raises(TransactionFailed):
        worker.commit(RECORDS)

    assert_nothing_then_everything(log, worker)


def test_the_client_commits_around_an_expired_batch(make_log) -> None:
    """The client reports success, and a record is missing."""
    log = make_log()
    with raw_producer(log, linger_ms=5_000, delivery_timeout_ms=60_000) as (producer, place):
        first = producer.send(place.topic, b"first", partition=0)
        producer.flush()
        second = producer.send(place.topic, b"second", partition=0)
        expire(producer)

        assert outcome(first) is None
        assert outcome(second) is not None
        producer.commit_transaction()

    assert values(log, "predictions", 0) == [b"first"]


# A batch that fails and is written all the same (c21)


def test_a_late_batch_is_never_seen(open_log, prefix, broker: Broker, start, monkeypatch, hasty) -> None:
    """The broker hangs with a record in flight and writes it after it was given up: it stays unseen."""
    log = open_log(broker.bootstrap)
    log.create_topics(2, {})
    worker = start(log)
    wakes = threading.Timer(4, broker.resume)

    def hang(producer: Any) -> None:
        broker.pause()
        wakes.start()

    hook_second_batch(monkeypatch, hang)
    try:
        with pytest.raises(TransactionFailed):
            worker.commit(RECORDS)
    finally:
        wakes.join()

    assert_nothing_then_everything(log, worker)


# An epoch bump in mid-transaction (c2)


def test_an_epoch_bump_is_never_committed_over(make_log, start, monkeypatch, hasty) -> None:
    """When the broker lost track of a producer, the transaction is given up whole."""
    log = make_log()
    worker = start(log)
    hook_second_batch(monkeypatch, lose_a_sequence_number)

    with pytest.raises(TransactionFailed):
        worker.commit(RECORDS)

    assert_nothing_then_everything(log, worker)


def test_the_client_reports_a_commit_that_the_broker_aborted(make_log) -> None:
    """The client returns from its commit, and nothing of the transaction is there."""
    log = make_log()
    with raw_producer(log, linger_ms=5_000) as (producer, place):
        producer.send(place.topic, b"first", partition=0)
        producer.flush()
        lose_a_sequence_number(producer)
        second = producer.send(place.topic, b"second", partition=0)

        producer.commit_transaction()

        assert isinstance(outcome(second), OutOfOrderSequenceNumberError)
    assert values(log, "predictions", 0) == []


# A batch that the broker rejects (c23)

SMALL: dict[Any, dict[str, str]] = {"predictions": {"max.message.bytes": "1000"}}
LARGE = Outgoing("predictions", 0, b"k", bytes(5_000))


def test_after_a_rejected_batch_the_next_transaction_is_whole(make_log, start) -> None:
    """A record that is too large for its topic fails its transaction and no other."""
    log = make_log(SMALL)
    worker = start(log)

    with pytest.raises(TransactionFailed):
        worker.commit([RECORDS[0], LARGE])

    assert_nothing_then_everything(log, worker)


def test_the_client_is_of_no_use_after_a_rejected_batch(make_log) -> None:
    """Its abort succeeds, and what it sends next is refused."""
    log = make_log(SMALL)
    with raw_producer(log) as (producer, place):
        assert outcome(producer.send(place.topic, LARGE.value, partition=0)) is not None
        producer.abort_transaction()
        producer.begin_transaction()

        assert outcome(producer.send(place.topic, b"next", partition=0)) is not None


# Values that no decoder takes (c6)


def test_bytes_that_no_decoder_takes_are_delivered(make_log, start) -> None:
    """Decoding is not the client's: whatever is in the log is delivered as it is, and what follows, too."""
    log = make_log()
    poison = [b"\xff\xfe", b"", None, b"{", b"\x00\x00\x00\x00\x01x"]
    log.append(example(0, value) for value in [*poison, b"after"])

    assert [record.value for record in start(log).take(6)] == [*poison, b"after"]


def test_a_header_name_that_the_client_cannot_read_is_delivered(make_log, start) -> None:
    """The client would raise at the record for ever; here its name is kept as content, before the other headers."""
    log = make_log()
    headers = (("good", b"1"), (Raw(b"\xff"), b"2"), ("also good", None))
    log.append([example(0, b"before"), example(0, b"bad", headers=headers), example(0, b"after")])
    read = (start(log).take(3), list(log.read("examples", 0, 0)))

    for records in read:
        assert [record.value for record in records] == [b"before", b"bad", b"after"]
        assert records[1].headers == ((NAME_NOT_UTF8, b"\xff"), headers[0], headers[2])


# Pause and resume (c20)


def test_a_resumed_partition_delivers_when_the_others_are_dry(make_log, start) -> None:
    """One side is paused with its records fetched, the other runs dry; resumed, the first goes on."""
    log = make_log(max_poll_records=100)
    log.append(example(0, b"%d" % n) for n in range(2_000))
    log.append(Outgoing("labels", 0, b"k", b"%d" % n) for n in range(2_000))
    worker = start(log)
    taken = list(worker.take(1))
    worker.session.pause([("examples", 0)])
    taken += worker.until_drained({("labels", 0)})
    worker.session.resume([("examples", 0)])
    taken += worker.take(4_000 - len(taken))

    for topic in ("examples", "labels"):
        assert [record.value for record in taken if record.topic == topic] == [
            b"%d" % n for n in range(2_000)
        ]


def test_the_client_strands_a_resumed_partition(make_log) -> None:
    """The client delivers nothing more of a partition that it had set aside."""
    log = make_log()
    log.append(example(0, b"%d" % n) for n in range(2_000))
    log.append(Outgoing("labels", 0, b"k", b"%d" % n) for n in range(2_000))
    examples, labels = (
        broker_partition(log._cluster.names, "examples", 0),
        broker_partition(log._cluster.names, "labels", 0),
    )
    consumer = KafkaConsumer(bootstrap_servers=log._cluster.connection.servers, max_poll_records=100)
    try:
        consumer.assign([examples, labels])
        consumer.seek_to_beginning()
        while not consumer._fetcher._next_partition_records:
            consumer.poll(100)
        aside = consumer._fetcher._next_partition_records.topic_partition
        other = labels if aside == examples else examples
        consumer.pause(aside)
        poll_until(consumer, lambda: consumer.position(other) == 2_000)
        before = consumer.position(aside)
        consumer.resume(aside)
        for _ in range(10):
            assert consumer.poll(100) == {}

        assert consumer.position(aside) == before < 2_000
    finally:
        consumer.close(autocommit=False)


def poll_until(consumer: Any, reached: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        consumer.poll(100)


# A partition that leaves and comes back (c24)


def pass_by(log: KafkaLog, worker: Worker) -> None:
    """Take all partitions from `worker`, do its work, leave."""
    evict(log)
    passer = Worker(log, "passer").start()
    passer.take(3)
    passer.commit(RECORDS)
    passer.close()


def poll_until_assigned_anew(worker: Worker) -> Polled:
    """Poll until the client hears that it is no longer a member, and becomes one again."""
    deadline = time.monotonic() + PATIENCE_S
    while (polled := worker.session.poll(1)).generation == worker.generation:
        assert time.monotonic() < deadline
    return polled


def test_work_of_a_partition_that_left_is_refused(make_log, open_log, start) -> None:
    """Another did the work meanwhile: the first one's is refused, and nothing delivered till it joins."""
    log = make_log()
    log.append(example(0, b"%d" % n) for n in range(3))
    worker = start(log)
    worker.take(3)
    pass_by(open_log(), worker)

    with pytest.raises(StaleGeneration):
        worker.commit(RECORDS)

    assert values(log, "predictions", 0) == PAYLOADS
    log.append([example(0, b"new")])
    before = worker.generation
    polled = worker.session.poll(PATIENCE_S)
    assert polled.records == ()
    assert polled.generation > before


@contextmanager
def another_member(log: KafkaLog) -> Iterator[set[int]]:
    """Polls all the time, in a thread of its own; gives its generations."""
    stop = threading.Event()
    generations: set[int] = set()

    def poll() -> None:
        session = log.join("other")
        while not stop.is_set():
            generations.add(session.poll(0.2).generation)
        session.close(1)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield generations
    finally:
        stop.set()
        thread.join(PATIENCE_S)


def test_a_member_that_is_busy_between_polls_gets_its_share(make_log, open_log, start) -> None:
    """The client begins a join anew that was answered while nobody polled: the group would never come to rest."""
    log = make_log()
    first = start(log)
    deadline = time.monotonic() + PATIENCE_S
    with another_member(open_log()) as others:
        while (polled := first.session.poll(0)).generation == first.generation:
            assert time.monotonic() < deadline
            time.sleep(0.3)
    assert len(polled.partitions) == 1
    assert len(others - {0}) <= 2, "the group came to rest at once"


def test_a_partition_that_left_and_came_back_within_one_poll_starts_anew(make_log, open_log, start) -> None:
    """The poll that lost it and got it back has another generation, no records, and holds all."""
    log = make_log()
    log.append(example(0, b"%d" % n) for n in range(3))
    worker = start(log)
    before = worker.generation
    worker.take(3)
    pass_by(open_log(), worker)
    log.append([example(0, b"new")])

    polled = poll_until_assigned_anew(worker)

    assert (polled.partitions, polled.records) == ((0, 1), ())
    assert polled.generation > before
    assert worker.session.poll(0.5).records == []
    with pytest.raises(StaleGeneration):
        worker.commit(RECORDS, generation=before)
    worker.generation = polled.generation
    worker.start()
    assert [record.value for record in worker.take(1)] == [b"new"]
    worker.commit([Outgoing("predictions", 0, b"k", b"of new")])
    assert values(log, "predictions", 0) == [*PAYLOADS, b"of new"]


def test_the_client_commits_old_work_with_a_fresh_membership(make_log, open_log, start) -> None:
    """The broker takes any membership that is current: the work is there twice, the position goes back."""
    log = make_log()
    log.append(example(0, b"%d" % n) for n in range(3))
    worker = start(log)
    worker.take(3)
    pass_by(open_log(), worker)
    poll_until_assigned_anew(worker)
    with raw_producer(log) as (producer, place):
        producer.send(place.topic, b"again", partition=0)
        producer.send_offsets_to_transaction(
            {broker_partition(log._cluster.names, "examples", 0): OffsetAndMetadata(1, "", -1)},
            worker.session._consumer.group_metadata(),
        )
        producer.commit_transaction()

    assert values(log, "predictions", 0) == [*PAYLOADS, b"again"]
    position = log.group_positions()[0]
    assert position is not None
    assert position.examples == 1


# Positions of a transaction that was aborted


def test_positions_of_a_step_given_up_are_never_committed(make_log, start) -> None:
    """Refused with the whole step, they do not come back with the next transaction, which names fewer partitions."""
    log = make_log()
    log.append(example(p, b"%d" % p) for p in range(2))
    worker = start(log)
    worker.take(2)
    evict(log)
    with pytest.raises(StaleGeneration):
        worker.commit(RECORDS)
    polled = poll_until_assigned_anew(worker)
    worker.session.commit(Transaction(RECORDS, {0: Position(1, 0)}), polled.generation)

    assert log.group_positions() == {0: Position(1, 0), 1: None}
    assert values(log, "predictions", 0) == PAYLOADS


def test_the_client_sends_positions_of_an_aborted_transaction_along(make_log, start) -> None:
    """They stand in the group as if their transaction had been committed."""
    log = make_log()
    worker = start(log)
    member = worker.session._consumer.group_metadata()
    evict(log)
    first, second = (broker_partition(log._cluster.names, "examples", p) for p in range(2))
    with raw_producer(log) as (producer, _):
        with pytest.raises(CommitFailedError):
            producer.send_offsets_to_transaction({second: OffsetAndMetadata(7, "", -1)}, member)
        producer.abort_transaction()
        poll_until_assigned_anew(worker)
        producer.begin_transaction()
        fresh = worker.session._consumer.group_metadata()
        producer.send_offsets_to_transaction({first: OffsetAndMetadata(1, "", -1)}, fresh)
        producer.commit_transaction()

    consumer = log._cluster.observer
    assert consumer.committed(first) == 1
    assert consumer.committed(second) == 7


# Drained (c25)


def test_an_open_transaction_of_a_producer_does_not_keep_a_side_from_being_drained(make_log, start) -> None:
    """Drained is up to the last stable offset: what is not committed is not there."""
    log = make_log()
    log.append(example(0, b"%d" % n) for n in range(4))
    with raw_producer(log) as (producer, _):
        producer.send(log._cluster.names.to_broker["examples"], b"open", partition=0)
        producer.flush()
        worker = start(log)

        assert worker.session.drained([("examples", 0)]) == set()
        worker.take(4)
        worker.until_drained({("examples", 0)})

        assert log.high_watermark("examples", 0) == 5
        producer.abort_transaction()


def test_a_side_is_drained_only_when_all_of_it_was_delivered(make_log, start) -> None:
    """Asked after every poll, before the first included: no side counts as drained with records to come."""
    log = make_log(max_poll_records=50)
    log.append(example(n % 2, b"%d" % n) for n in range(1_000))
    worker = start(log)
    got = {("examples", 0): 0, ("examples", 1): 0}

    while sum(got.values()) < 1_000:
        drained = worker.session.drained(got)
        assert all(got[side] == 500 for side in drained)
        for record in worker.poll():
            got[record.topic, record.partition] += 1

    worker.until_drained(set(got))


def test_a_leader_that_the_client_does_not_know_yet_is_asked_for_again(make_log, monkeypatch) -> None:
    """A broker that has just come back leads before the client has its address, for which it looks twice a minute only."""
    log = make_log()
    manager = log._cluster.admin._client._manager
    for connection in list(manager._conns.values()):
        connection.close()
    manager._conns.clear()
    (known,) = manager.cluster._brokers.values()
    manager.cluster._brokers = {99: type(known)(99, known.host, known.port, None)}
    monkeypatch.setattr(admin, "CONNECT_S", 5.0)
    assert log.high_watermark("examples", 0) == 0
    with pytest.raises(Unreachable), translated("ask"):
        raise UnknownBrokerIdError(2)


def test_a_transaction_is_checked_against_partitions_that_are_not_owned(make_log, start) -> None:
    """Positions of a partition that is another's are refused before anything is sent."""
    log = make_log()
    worker = start(log)

    with pytest.raises(StaleGeneration):
        worker.session.commit(Transaction(RECORDS, {7: Position(0, 0)}), worker.generation)

    assert values(log, "predictions", 0) == []
