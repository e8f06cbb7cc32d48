"""Topics: made once, found by name, kept apart by prefix; and the writing that only one may do."""

import threading
import time

import pytest

from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.log.protocol import Fenced, Log, Refused
from tests.log.support.place import KEEP, PARTITIONS, Place
from tests.log.support.worker import PATIENCE_S, example, values


def test_missing_topics_are_refused_with_the_remedy(place: Place) -> None:
    """Whoever needs the topics is told how to make them."""
    log = place.open()

    with pytest.raises(Refused, match=r"there is no.*topics create.*log\.url"):
        _ = log.partitions
    with pytest.raises(Refused, match="topics create"):
        log.join("slot")
    assert log.describe() == dict.fromkeys(TOPICS)


def test_topics_are_created_once(place: Place) -> None:
    """`create_topics` names what it made, and leaves what exists as it is."""
    log = place.open()

    assert set(log.create_topics(2, KEEP)) == {place.prefix + topic for topic in TOPICS}
    before = log.describe()
    assert log.create_topics(4, {}) == []
    assert log.describe() == before
    assert log.partitions == 2


def test_a_topic_is_described(log: Log, place: Place) -> None:
    """Name, a lasting id of its own, partition count and configuration."""
    described = log.describe()
    found = [topic for topic in described.values() if topic]

    assert {topic.name for topic in found} == {place.prefix + topic for topic in TOPICS}
    assert len({topic.id for topic in found}) == len(TOPICS)
    assert {topic.partitions for topic in found} == {PARTITIONS}
    for topic in found:
        assert topic.config["cleanup.policy"] == "delete"
        assert topic.config["retention.ms"] == "-1"
        assert topic.config["message.timestamp.type"] == "CreateTime"
    assert place.open().describe() == described


def test_unequal_partition_counts_are_refused(place: Place, log: Log) -> None:
    """Topics that cannot be joined partition by partition are named."""
    odd = place.create("odd-", PARTITIONS + 1, examples=place.prefix + "examples")

    with pytest.raises(Refused, match="examples"):
        _ = odd.partitions


def test_two_prefixes_do_not_see_each_other(place: Place, log: Log, start) -> None:
    """Records and positions of one prefix are nothing to another in the same log."""
    other = place.create("other-")
    log.append([example(0, b"mine")])
    other.append([example(0, b"theirs"), example(0, b"too")])
    worker = start(log)
    worker.take(1)
    worker.commit([Outgoing("predictions", 0, None, b"p")])

    assert values(other, "examples", 0) == [b"theirs", b"too"]
    assert values(other, "predictions", 0) == []
    assert other.group_positions() == dict.fromkeys(range(PARTITIONS))
    their_worker = start(other)
    assert [record.value for record in their_worker.take(2)] == [b"theirs", b"too"]
    worker.commit([Outgoing("predictions", 0, None, b"still mine")])


def test_two_models_can_read_one_stream(place: Place, log: Log) -> None:
    """A topic named in the settings is shared, the others stay apart."""
    other = place.create("other-", examples=place.prefix + "examples")
    log.append([example(0, b"shared")])

    assert values(other, "examples", 0) == [b"shared"]
    assert other.describe()["labels"] != log.describe()["labels"]


def test_exclusive_writing_writes_what_was_decided(log: Log) -> None:
    """All of it, and its number is returned; deciding nothing writes nothing."""
    written = log.exclusively(lambda: [Outgoing("updates", p, None, b"first") for p in range(PARTITIONS)])
    again = log.exclusively(lambda: [] if values(log, "updates", 0) else [Outgoing("updates", 0, None, b"x")])

    assert (written, again) == (PARTITIONS, 0)
    assert [values(log, "updates", partition) for partition in range(PARTITIONS)] == [[b"first"]] * PARTITIONS


def test_a_caller_overtaken_while_deciding_writes_nothing(place: Place, log: Log) -> None:
    """Who comes in between wins; the other is fenced and must read again."""
    other = place.open()

    def decide() -> list[Outgoing]:
        other.exclusively(lambda: [Outgoing("updates", 0, None, b"winner")])
        return [Outgoing("updates", partition, None, b"loser") for partition in range(PARTITIONS)]

    with pytest.raises(Fenced):
        log.exclusively(decide)

    assert [values(log, "updates", partition) for partition in range(PARTITIONS)] == [[b"winner"], [], []]


def test_of_racing_callers_one_writes(place: Place, log: Log) -> None:
    """Both look before they write; whoever loses looks again and finds the other's record."""
    logs = [place.open(), place.open()]
    barrier = threading.Barrier(2)
    written: list[int] = []

    def race(own: Log) -> None:
        barrier.wait()
        for _ in range(20):
            try:
                count = own.exclusively(
                    lambda: [] if values(own, "updates", 0) else [Outgoing("updates", 0, None, b"epoch")]
                )
            except Fenced:
                continue
            written.append(count)
            return

    threads = [threading.Thread(target=race, args=(own,)) for own in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(written) == [0, 1]
    assert values(log, "updates", 0) == [b"epoch"]


def test_an_error_while_deciding_writes_nothing(log: Log) -> None:
    """The caller's own error comes through, and the next caller is not held up."""

    def decide() -> list[Outgoing]:
        raise ValueError("no decision")

    with pytest.raises(ValueError, match="no decision"):
        log.exclusively(decide)

    assert log.exclusively(lambda: [Outgoing("updates", 0, None, b"v")]) == 1


def test_one_topics_count_is_told_without_the_others(place: Place, log: Log) -> None:
    """Whoever may see one topic alone can still place records in it."""
    assert log.partition_count("labels") == PARTITIONS
    with pytest.raises(Refused, match="topics create"):
        place.open("missing-").partition_count("examples")


def test_workers_of_other_prefixes_are_seen_on_the_inputs_that_they_share(
    place: Place, log: Log, start
) -> None:
    """By their committed positions, and nobody sees itself."""
    other = place.create("other-", labels=place.prefix + "labels")
    assert log.other_readers() == other.other_readers() == {}
    worker = start(log)
    log.append([example(0, b"v")])
    worker.take(1)
    worker.commit([Outgoing("predictions", 0, None, b"p")], metadata='{"p":0,"o":0,"s":0}')

    deadline = time.monotonic() + PATIENCE_S
    while not other.other_readers():  # a broker shows a committed position a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert log.other_readers() == {}
    assert other.other_readers() == {place.settings().group: frozenset({"labels"})}
    assert place.create("third-", examples=place.prefix + "examples").other_readers() == {
        place.settings().group: frozenset({"examples"})
    }
