"""Records come back as they were written, in order, and by range."""

import math
import time
from collections.abc import Iterator

import pytest

from mistakebound.core.records import Headers, Outgoing, Record, TopicPartition
from mistakebound.log.partitioner import partition_of
from mistakebound.log.protocol import Log, LogError, OffsetLost, Refused, TransactionFailed
from tests.log.support.place import PARTITIONS, Place
from tests.log.support.worker import PATIENCE_S, example, values


def test_a_partition_keeps_the_order_of_writing(log: Log) -> None:
    """Records come in the order of append, offsets growing, whatever other partitions got in between."""
    written = [example(n % PARTITIONS, b"%d" % n) for n in range(900)]
    assert log.append(written) == 900

    for partition in range(PARTITIONS):
        read = list(log.read("examples", partition, 0))
        assert [record.value for record in read] == [b"%d" % n for n in range(partition, 900, PARTITIONS)]
        offsets = [record.offset for record in read]
        assert offsets == sorted(set(offsets))


def test_a_record_comes_back_whole(log: Log) -> None:
    """Topic, partition, key, value, time and headers are those that were written."""
    log.append([example(1, b"value", b"key", timestamp_ms=1_700_000_000_123, headers=(("h", b"1"),))])

    (record,) = log.read("examples", 1, 0)

    assert record == Record("examples", 1, 0, 1_700_000_000_123, b"key", b"value", (("h", b"1"),))


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (None, b""), (b"", None), (b"\x00\xff", b"\xfe\x00")]
)
def test_missing_and_empty_are_different(log: Log, key: bytes | None, value: bytes | None) -> None:
    """A null key or value stays null, an empty one empty, and any byte is allowed."""
    log.append([example(0, value, key)])

    (record,) = log.read("examples", 0, 0)

    assert (record.key, record.value) == (key, value)


def test_headers_keep_duplicates_order_and_nulls(log: Log) -> None:
    """Headers are a sequence, not a mapping; their values may be missing or empty."""
    headers: Headers = (("b", b"1"), ("a", None), ("b", b"2"), ("ü", b"\xff"), ("a", b""))
    log.append([example(0, b"v", headers=headers), example(0, b"w")])

    first, second = log.read("examples", 0, 0)

    assert first.headers == headers
    assert second.headers == ()


def test_transactions_keep_headers_and_times_too(log: Log, start) -> None:
    """Outputs of a transaction are records like any other."""
    worker = start(log)
    headers: Headers = (("x", b"1"), ("x", None))
    worker.commit([Outgoing("predictions", 2, b"k", None, headers, 1_600_000_000_000)])

    (record,) = log.read("predictions", 2, 0)

    assert (record.timestamp_ms, record.key, record.value, record.headers) == (
        1_600_000_000_000,
        b"k",
        None,
        headers,
    )


def test_a_record_without_a_time_is_stamped_with_now(log: Log) -> None:
    """`timestamp_ms` None means the time of writing."""
    before = int(time.time() * 1000)
    log.append([example(0, b"v")])
    after = math.ceil(time.time() * 1000)

    (record,) = log.read("examples", 0, 0)

    assert before <= record.timestamp_ms <= after


def test_a_negative_partition_means_by_key(log: Log) -> None:
    """Every log puts a key where Kafka's default partitioner puts it."""
    keys = [b"key-%d" % n for n in range(60)]
    log.append(Outgoing("labels", -1, key, key) for key in keys)

    for partition in range(PARTITIONS):
        expected = [key for key in keys if partition_of(key, PARTITIONS) == partition]
        assert values(log, "labels", partition) == expected


def test_a_large_record_passes(log: Log, start) -> None:
    """A million bytes pass, appended or in a transaction."""
    value = bytes(1_000_000)
    log.append([example(0, value)])
    worker = start(log)
    worker.commit([Outgoing("predictions", 0, b"k", value)])

    assert worker.take(1)[0].value == value
    assert values(log, "predictions", 0) == [value]


def test_the_largest_sure_record_passes(log: Log, start) -> None:
    """`max_record_bytes` of key, value and headers are taken by every topic that is written."""
    headers: Headers = tuple((f"header-{n}", b"x" * 10) for n in range(8))
    room = (
        log.max_record_bytes("predictions")
        - 1
        - sum(len(name) + len(value or b"") for name, value in headers)
    )
    log.append([Outgoing("examples", 0, b"k", bytes(room), headers)])
    start(log).commit([Outgoing("predictions", 0, b"k", bytes(room), headers)])

    assert [len(value or b"") for value in values(log, "examples", 0)] == [room]
    assert [len(value or b"") for value in values(log, "predictions", 0)] == [room]


def test_a_record_too_large_is_a_clear_error(log: Log, start) -> None:
    """Above the limit nothing is written, and the error says so."""
    value = bytes(1_100_000)
    with pytest.raises(LogError, match=r"large|bytes"):
        log.append([example(0, value)])
    with pytest.raises(TransactionFailed):
        start(log).commit([Outgoing("predictions", 0, b"k", value)])

    assert values(log, "examples", 0) == []
    assert values(log, "predictions", 0) == []


def test_a_partition_that_is_not_there_is_refused(log: Log) -> None:
    """Reading or writing beyond the partition count raises, it never waits for ever."""
    with pytest.raises(LogError):
        log.append([example(PARTITIONS, b"v")])
    with pytest.raises(LogError):
        list(log.read("examples", PARTITIONS, 0))


def test_a_range_is_start_inclusive_and_stop_exclusive(log: Log) -> None:
    """`read` gives start <= offset < stop; without a stop it reaches the high watermark."""
    log.append(example(0, b"%d" % n) for n in range(10))

    assert [record.offset for record in log.read("examples", 0, 3, 6)] == [3, 4, 5]
    assert [record.offset for record in log.read("examples", 0, 7)] == [7, 8, 9]
    assert [record.offset for record in log.read("examples", 0, 8, 99)] == [8, 9]
    assert list(log.read("examples", 0, 4, 4)) == []
    assert list(log.read("examples", 0, 10)) == []
    assert list(log.read("examples", 1, 0)) == []


def test_a_range_may_start_and_stop_in_a_gap(log: Log, start) -> None:
    """Where transactions leave gaps in the offsets, a range gives the records that lie in it."""
    worker = start(log)
    for n in range(4):
        worker.commit([Outgoing("outcomes", 0, None, b"%d" % n)])
    everything = list(log.read("outcomes", 0, 0))
    high = log.high_watermark("outcomes", 0)

    assert [record.value for record in everything] == [b"0", b"1", b"2", b"3"]
    for first in range(high + 1):
        assert list(log.read("outcomes", 0, first)) == [r for r in everything if r.offset >= first]
        assert list(log.read("outcomes", 0, 0, first)) == [r for r in everything if r.offset < first]


def test_a_range_longer_than_one_fetch_is_whole(log: Log) -> None:
    """Nothing is lost or doubled where the reader has to ask several times."""
    log.append(example(0, b"%d" % n) for n in range(9_001))

    assert values(log, "examples", 0) == [b"%d" % n for n in range(9_001)]


def test_a_start_above_the_end_is_lost(log: Log) -> None:
    """An offset that the log never gave means that the log is another one."""
    log.append([example(0, b"v")])

    with pytest.raises(OffsetLost):
        list(log.read("examples", 0, 2))


def test_a_start_below_the_oldest_record_is_lost(place: Place, log: Log, start) -> None:
    """What retention removed is never skipped in silence, by a reader, a follower or a worker."""
    log.append(example(0, b"%d" % n) for n in range(10))
    worker = start(log)
    place.forget("examples", 0, 4)

    assert log.low_watermark("examples", 0) == 4
    assert [record.offset for record in log.read("examples", 0, 4)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(OffsetLost):
        list(log.read("examples", 0, 3))
    with pytest.raises(OffsetLost):
        next(iter(log.follow({("examples", 0): 3})))
    with pytest.raises(OffsetLost):
        worker.seek(0, 3, 0)
        worker.take(1)


def test_watermarks_bound_the_records(log: Log) -> None:
    """Low is the oldest offset, high the one after the newest; both 0 for an empty partition."""
    log.append(example(0, b"%d" % n) for n in range(5))

    assert (log.low_watermark("examples", 0), log.high_watermark("examples", 0)) == (0, 5)
    assert (log.low_watermark("labels", 0), log.high_watermark("labels", 0)) == (0, 0)


def test_a_follower_sees_what_comes_later(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """`follow` gives what is there, then empty batches, then what is appended meanwhile."""
    monkeypatch.setattr("mistakebound.log.sqlite.log._FOLLOW_EMPTY_S", 0.05)
    log.append([example(0, b"0"), example(1, b"a")])
    seen: dict[int, list[bytes | None]] = {0: [], 1: []}
    more = iter([b"1", b"2", b"3"])
    end = time.monotonic() + PATIENCE_S

    for batch in log.follow({("examples", 0): 0, ("examples", 1): 0}):
        for record in batch:
            seen[record.partition].append(record.value)
        if seen[0][-1:] == [b"3"] or time.monotonic() > end:
            break
        if not batch and (value := next(more, None)):
            log.append([example(0, value)])

    assert seen == {0: [b"0", b"1", b"2", b"3"], 1: [b"a"]}


def test_an_error_names_the_topic(log: Log) -> None:
    """A reader told of a lost offset learns where."""
    with pytest.raises(Refused, match="labels"):
        list(log.read("labels", 2, 77))


@pytest.mark.parametrize("refused", [example(0, bytes(2_000_000)), example(PARTITIONS, b"v")])
def test_what_was_written_before_a_refused_record_is_counted(log: Log, refused: Outgoing) -> None:
    """All before it are in the log, it is the next one, and none after it was asked for."""
    asked: list[int] = []

    def records() -> Iterator[Outgoing]:
        for number in range(25):
            asked.append(number)
            yield refused if number == 17 else example(number % PARTITIONS, b"%d" % number)

    with pytest.raises(LogError) as failed:
        log.append(records())

    assert failed.value.acknowledged == 17
    assert sum(len(values(log, "examples", p)) for p in range(PARTITIONS)) == 17
    assert log.append([example(0, b"after")]) == 1


def test_records_of_a_slow_iterable_are_seen_as_they_come(log: Log) -> None:
    """Whoever types lines, or follows another program, need not wait for thousands of them."""

    def records() -> Iterator[Outgoing]:
        for number in range(3):
            time.sleep(0.1)
            yield example(0, b"%d" % number)
            deadline = time.monotonic() + PATIENCE_S
            while number and len(values(log, "examples", 0)) < number:
                assert time.monotonic() < deadline, "the record before is not there"
                time.sleep(0.06)

    assert log.append(records()) == 3


def test_stable_ends_are_those_of_the_log_now(log: Log) -> None:
    """Of the partitions asked for, of any topic."""
    asked: list[TopicPartition] = [("examples", 0), ("labels", 2), ("updates", 1)]
    assert log.stable_ends(asked) == dict.fromkeys(asked, 0)

    log.append([example(0, b"v"), example(0, b"w")])

    assert log.stable_ends(asked) == {("examples", 0): 2, ("labels", 2): 0, ("updates", 1): 0}
    assert log.stable_ends([]) == {}
