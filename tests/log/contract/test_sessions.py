"""What a worker asks of its session: positions, order of delivery, pausing, fencing."""

import random

import pytest

from mistakebound.core.records import Outgoing, Position, Record, TopicPartition
from mistakebound.log.protocol import Fenced, Log, OffsetLost
from tests.log.support.place import PARTITIONS, Place
from tests.log.support.worker import PATIENCE_S, example, outputs
from tests.support.tries import long


def both(count: int) -> list[Outgoing]:
    """As many examples and labels in every partition, numbered."""
    return [
        Outgoing(topic, partition, None, b"%d" % n)
        for n in range(count)
        for partition in range(PARTITIONS)
        for topic in ("examples", "labels")
    ]


def by_side(records: list[Record]) -> dict[TopicPartition, list[bytes | None]]:
    sides: dict[TopicPartition, list[bytes | None]] = {}
    for record in records:
        sides.setdefault((record.topic, record.partition), []).append(record.value)
    return sides


def test_the_first_poll_waits_for_seek(log: Log) -> None:
    """A new generation brings no records: the worker must first say where to start."""
    log.append(both(5))
    session = log.join("slot")
    for _ in range(int(PATIENCE_S / 0.1)):
        polled = session.poll(0.1)
        assert not polled.records
        if polled.partitions:
            break
    assert polled.partitions == tuple(range(PARTITIONS))
    assert session.committed(range(PARTITIONS)) == dict.fromkeys(range(PARTITIONS))
    assert not session.poll(0.1).records
    session.close(10)


def test_everything_is_delivered_in_order(log: Log, start) -> None:
    """Each side's records come once, in offset order, however many polls it takes."""
    log.append(both(2_000))
    worker = start(log)
    taken = by_side(worker.take(2_000 * 2 * PARTITIONS))

    assert set(taken) == {
        (topic, partition) for topic in ("examples", "labels") for partition in range(PARTITIONS)
    }
    assert all(numbers == [b"%d" % n for n in range(2_000)] for numbers in taken.values())


def test_what_comes_later_is_delivered_too(log: Log, start) -> None:
    """A poll that found nothing does not end the session's reading."""
    worker = start(log)
    assert list(worker.poll()) == []
    log.append(both(1))
    assert len(worker.take(2 * PARTITIONS)) == 2 * PARTITIONS


def test_seek_goes_back_and_forth(log: Log, start) -> None:
    """After `seek` both inputs are delivered from there, examples and labels each from its own place."""
    log.append(both(10))
    worker = start(log)
    worker.take(20 * PARTITIONS)
    worker.seek(1, 7, 9)

    assert by_side(worker.take(4)) == {("examples", 1): [b"7", b"8", b"9"], ("labels", 1): [b"9"]}


def test_a_restart_continues_from_the_committed_positions(place: Place, log: Log, start) -> None:
    """What was committed is not delivered again; what was only read is."""
    log.append(both(4))
    worker = start(log)
    worker.take(8 * PARTITIONS)
    worker.commit(metadata="m")
    log.append(both(2))
    worker.take(4 * PARTITIONS)
    worker.close()

    again = start(place.open())

    assert again.session.committed([0]) == {0: Position(4, 4, "m")}
    assert len(again.take(4 * PARTITIONS)) == 4 * PARTITIONS


def test_a_second_session_of_a_slot_fences_the_first(place: Place, log: Log, start) -> None:
    """The predecessor can no longer write; the successor works."""
    log.append(both(1))
    first = start(log)
    first.take(2 * PARTITIONS)
    log_of_second = place.open()
    second = log_of_second.join("slot")

    with pytest.raises(Fenced):
        first.commit([Outgoing("predictions", 0, b"k", b"never")])
    second.close(10)
    first.close()

    third = start(place.open())
    assert len(third.take(2 * PARTITIONS)) == 2 * PARTITIONS
    third.commit([Outgoing("predictions", 0, b"k", b"once")])
    assert [record.value for record in log.read("predictions", 0, 0)] == [b"once"]
    assert outputs(log)["predictions"] == 1


def test_an_empty_side_is_drained(log: Log, start) -> None:
    """Where nothing was ever written, everything has been read."""
    worker = start(log)
    sides = {("examples", 0), ("labels", 0), ("labels", 2)}

    assert worker.session.drained(sides) == sides
    assert worker.session.drained([]) == set()


def test_a_side_is_drained_once_all_of_it_was_returned(log: Log, start) -> None:
    """Not before its last record came out of `poll`, and no longer when more is appended."""
    log.append(both(300))
    worker = start(log)
    side = {("examples", 1)}
    assert worker.session.drained(side) == set()

    worker.take(600 * PARTITIONS)
    worker.until_drained(side)
    assert worker.session.drained({*side, ("labels", 0)}) == {*side, ("labels", 0)}

    log.append([example(1, b"more")])
    assert worker.session.drained({*side, ("labels", 0)}) == {("labels", 0)}
    worker.take(1)
    assert worker.until_drained(side) == []


def test_what_is_not_delivered_yet_is_counted_as_the_log_is_now(log: Log, start) -> None:
    """Of the sides asked for; nothing is said of one that waits to be placed."""
    worker = start(log)
    sides = {("examples", 1), ("labels", 1)}
    worker.until_drained(sides)
    assert worker.session.undelivered(sides) == dict.fromkeys(sides, 0)

    log.append([example(1, b"v"), example(1, b"w")])

    assert worker.session.undelivered(sides) == {("examples", 1): 2, ("labels", 1): 0}
    assert worker.session.undelivered([]) == {}
    worker.take(2)
    worker.until_drained(sides)
    assert worker.session.undelivered(sides) == dict.fromkeys(sides, 0)


def test_a_paused_side_is_silent_and_keeps_its_place(log: Log, start) -> None:
    """No record of a paused side is delivered; after `resume` none is missing."""
    log.append(both(1_000))
    worker = start(log)
    paused = {("labels", partition) for partition in range(PARTITIONS)}
    worker.session.pause(paused)
    taken = by_side(worker.take(1_000 * PARTITIONS))
    assert not paused & set(taken)
    assert worker.session.drained(paused) == set()

    worker.session.resume(paused)
    assert set(by_side(worker.take(1_000 * PARTITIONS))) == paused


@pytest.mark.parametrize("seed", [1, *long(2, 3)])
def test_pausing_and_resuming_at_random_loses_nothing(log: Log, start, seed: int) -> None:
    """Whatever is paused and resumed in whatever order, in the end every record was delivered once."""
    chance = random.Random(seed)
    log.append(both(3_000))
    worker = start(log)
    sides = [(topic, partition) for topic in ("examples", "labels") for partition in range(PARTITIONS)]
    paused: set[TopicPartition] = set()
    taken: list[Record] = []
    for _ in range(60):
        changed = set(chance.sample(sides, 2))
        worker.session.pause(changed - paused)
        worker.session.resume(changed & paused)
        paused ^= changed
        came = list(worker.poll(0.01))
        assert not paused & {(record.topic, record.partition) for record in came}
        taken += came
    worker.session.resume(paused)
    taken += worker.until_drained(set(sides))

    assert by_side(taken) == {side: [b"%d" % n for n in range(3_000)] for side in sides}


def test_a_position_above_the_end_is_lost(log: Log, start) -> None:
    """A worker whose position the log never reached is told, it does not wait for ever."""
    log.append([example(0, b"v")])
    worker = start(log)

    with pytest.raises(OffsetLost):
        worker.seek(0, 50, 0)
        worker.take(1)
