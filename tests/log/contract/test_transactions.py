"""A transaction happens whole or not at all, for everyone who looks."""

import threading

import pytest

from mistakebound.core.records import TOPICS, Outgoing, Position, Transaction
from mistakebound.log.protocol import Log, StaleGeneration, TransactionFailed
from tests.log.support.place import PARTITIONS, Place
from tests.log.support.worker import example, outputs, values


def predictions(count: int, value: bytes = b"p") -> list[Outgoing]:
    return [Outgoing("predictions", n % PARTITIONS, b"k", value) for n in range(count)]


def test_outputs_and_positions_appear_together(log: Log, start) -> None:
    """After a commit both are there, for this session and for everyone else."""
    log.append(example(n % PARTITIONS, b"v") for n in range(9))
    worker = start(log)
    worker.take(9)
    worker.commit(predictions(6), "marks")

    expected = dict.fromkeys(range(PARTITIONS), Position(3, 0, "marks"))
    assert worker.session.committed(range(PARTITIONS)) == expected
    assert log.group_positions() == expected
    assert outputs(log)["predictions"] == 6


def test_a_receipt_tells_where_the_records_went(log: Log, start) -> None:
    """Its ends are the offsets after the last record written to each partition."""
    worker = start(log)
    worker.commit([Outgoing("updates", 1, None, b"0")])
    receipt = worker.commit([Outgoing("updates", 1, None, b"%d" % n) for n in (1, 2)])

    last = list(log.read("updates", 1, 0))[-1]
    assert receipt.ends == {("updates", 1): last.offset + 1}


def test_only_touched_partitions_move(log: Log, start) -> None:
    """A partition that a transaction does not name keeps its position; one never named has none."""
    worker = start(log)
    worker.session.commit(
        Transaction((), {0: Position(0, 0, "a"), 1: Position(0, 0, "b")}), worker.generation
    )
    worker.session.commit(Transaction((), {1: Position(0, 0, "c")}), worker.generation)

    assert log.group_positions() == {0: Position(0, 0, "a"), 1: Position(0, 0, "c"), 2: None}


@pytest.mark.parametrize("metadata", ["", "ü" * 10, "x" * 4_095])
def test_metadata_comes_back(log: Log, start, metadata: str) -> None:
    """Up to 4,095 bytes of metadata are kept with a position."""
    worker = start(log)
    worker.commit(metadata=metadata)

    assert log.group_positions()[0] == Position(0, 0, metadata)
    assert worker.session.committed([0]) == {0: Position(0, 0, metadata)}


def test_metadata_too_long_fails_the_transaction(log: Log, start) -> None:
    """4,097 bytes are refused, with all that came along."""
    worker = start(log)
    with pytest.raises(TransactionFailed):
        worker.commit(predictions(3), "x" * 4_097)

    assert outputs(log)["predictions"] == 0
    assert log.group_positions() == dict.fromkeys(range(PARTITIONS))


def test_a_failed_transaction_is_never_seen(place: Place, log: Log, start) -> None:
    """Nothing of it appears: not to a reader open at the time, not to a later one, not after more commits."""
    log.append(example(n % PARTITIONS, b"v") for n in range(9))
    sides = {("predictions", partition): 0 for partition in range(PARTITIONS)}
    follower = place.open().follow(sides)
    worker = start(log)
    worker.take(9)
    with pytest.raises(TransactionFailed):
        worker.commit([*predictions(6, b"never"), Outgoing("updates", 0, None, bytes(1_100_000))])
    assert log.group_positions() == dict.fromkeys(range(PARTITIONS))
    worker.close()

    worker = start(place.open())
    assert len(worker.take(9)) == 9
    worker.commit(predictions(3, b"once"))

    seen: list[bytes | None] = []
    while len(seen) < 3:
        seen += [record.value for record in next(follower)]
    assert seen == [b"once"] * 3
    assert [values(log, "predictions", partition) for partition in range(PARTITIONS)] == [[b"once"]] * 3
    assert outputs(log) == {"predictions": 3, "outcomes": 0, "updates": 0, "dead-letters": 0}


def test_another_generation_is_refused(log: Log, start) -> None:
    """A transaction of another generation writes nothing, and the session lives on."""
    log.append(example(n % PARTITIONS, b"v") for n in range(3))
    worker = start(log)
    worker.take(3)
    with pytest.raises(StaleGeneration):
        worker.commit(predictions(3), generation=worker.generation - 1)
    assert outputs(log)["predictions"] == 0
    assert log.group_positions() == dict.fromkeys(range(PARTITIONS))

    worker.commit(predictions(3))
    assert outputs(log)["predictions"] == 3


def test_a_reader_never_sees_half_a_transaction(place: Place, log: Log, start) -> None:
    """While transactions run, every read finds whole ones, and positions never ahead of their outputs."""
    log.append(example(0, b"%d" % n) for n in range(20))
    worker = start(log)
    worker.take(20)
    reader = place.open()
    done = threading.Event()
    seen: list[tuple[int, int, int]] = []

    def look() -> None:
        while not done.is_set():
            position = reader.group_positions()[0]
            counts = [len(values(reader, "predictions", partition)) for partition in (0, 1)]
            seen.append((position.examples if position else 0, counts[0], counts[1]))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for n in range(20):
            sent = [Outgoing("predictions", partition, b"k", b"v") for partition in (0, 1) for _ in range(50)]
            worker.session.commit(Transaction(sent, {0: Position(n + 1, 0)}), worker.generation)
    finally:
        done.set()
        thread.join()

    assert seen
    for position, first, second in seen:
        assert first % 50 == second % 50 == 0
        assert first >= 50 * position
        assert second >= 50 * position


def test_trying_transactions_writes_nothing_and_disturbs_nobody(log: Log, start) -> None:
    """A worker goes on with its own, whoever tries meanwhile."""
    worker = start(log)
    worker.commit(predictions(3))
    before = outputs(log)
    ends = [log.high_watermark(topic, p) for topic in TOPICS for p in range(PARTITIONS)]

    assert log.try_transactions() is None
    assert log.try_transactions() is None

    assert [log.high_watermark(topic, p) for topic in TOPICS for p in range(PARTITIONS)] == ends
    assert outputs(log) == before
    worker.commit(predictions(3))
    assert outputs(log)["predictions"] == 6
