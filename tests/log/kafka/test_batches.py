"""Whole batches are what the client itself would write and read, byte for byte."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import CorruptRecordError, KafkaTimeoutError, NotLeaderForPartitionError
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from mistakebound.core.records import Outgoing, Record
from mistakebound.log.kafka.kafka_python import batches, record_format
from mistakebound.log.kafka.kafka_python.send import KafkaPythonSender

PLACE = TopicPartition("test.predictions", 3)
texts = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2).map(tuple)
times = st.integers(0, 2**45)
outgoing = st.builds(
    Outgoing, st.just("predictions"), st.just(3), texts, texts | st.just(bytes(9_000)), headers, times
)


def filled(records: list[Outgoing], size: int) -> list[Any]:
    """The batches of a producer that takes any record."""
    accumulator = SimpleNamespace(config={"batch_size": size, "compression_attrs": 0})
    producer = SimpleNamespace(_accumulator=accumulator, _ensure_valid_record_size=lambda size: None)
    return list(batches._batches(producer, PLACE, records))


def sealed(batch: Any) -> bytes:
    """As the client would send it."""
    batch.records.close()
    return bytes(batch.records.buffer())


@settings(max_examples=40, deadline=None)
@given(st.lists(outgoing, min_size=1, max_size=10))
def test_a_batch_is_the_clients_own(records: list[Outgoing]) -> None:
    """Keys, values, nulls, headers, times before the first one: not one byte differs."""
    own = MemoryRecordsBuilder(batches.MAGIC, 0, 10**9)
    for record in records:
        own.append(record.timestamp_ms, record.key, record.value, list(record.headers))
    own.close()

    (batch,) = filled(records, 10**9)

    assert sealed(batch) == bytes(own.buffer())
    assert batch.record_count == len(records)


@settings(max_examples=40, deadline=None)
@given(st.lists(outgoing, min_size=1, max_size=30), st.integers(100, 2_000))
def test_what_is_written_is_read(records: list[Outgoing], size: int) -> None:
    """However many batches it takes; no batch of several records is larger than was asked for."""
    made = [sealed(batch) for batch in filled(records, size)]
    read: list[Record] = []
    for each in made:
        found = MemoryRecords(each)
        while (batch := found.next_batch()) is not None:
            read += record_format.decoded("predictions", 3, batch)

    assert [(each.key, each.value, each.headers) for each in read] == [
        (record.key, record.value, record.headers) for record in records
    ]
    assert [each.timestamp_ms for each in read] == [record.timestamp_ms for record in records]
    assert all(len(each) <= size or len(list(MemoryRecords(each).next_batch())) == 1 for each in made)


@pytest.mark.parametrize(
    "failure", [NotLeaderForPartitionError("moved"), None], ids=["refused", "unanswered"]
)
def test_a_batch_that_failed_ends_the_flush_whatever_the_client_makes_of_it(
    failure: Exception | None,
) -> None:
    """One bad batch among good ones is raised: the client's own state is a second barrier, and not the only one."""
    sender = object.__new__(KafkaPythonSender)
    sender._producer = SimpleNamespace(flush=lambda timeout_s: None)
    good = SimpleNamespace(is_done=True, exception=None, value=(7, -1, None), succeeded=lambda: True)
    bad = SimpleNamespace(is_done=failure is not None, exception=failure, succeeded=lambda: False)
    sender._sent = {
        ("predictions", 3): [
            SimpleNamespace(produce_future=future, record_count=1, topic_partition=PLACE)
            for future in (good, bad)
        ]
    }

    with pytest.raises(KafkaTimeoutError if failure is None else NotLeaderForPartitionError):
        sender.flush(1.0)


def bytes_of(number: int) -> bytes:
    return record_format._spell(number)


def batch_of(body: bytes, count: int, first: int = 0) -> Any:
    """What the client hands over of a batch whose records are these bytes."""

    class Batch:
        base_offset, first_timestamp, max_timestamp, timestamp_type = 0, first, first, 0
        records_count, _buffer, _pos = count, body, 0

        def __iter__(self) -> Iterator[Any]:
            return iter(())

    return Batch()


def record_bytes(delay: int, headers: bytes = bytes_of(0)) -> bytes:
    content = b"\0" + bytes_of(delay) + bytes_of(0) + bytes_of(-1) + bytes_of(-1) + headers
    return bytes_of(len(content)) + content


@pytest.mark.parametrize(
    ("first", "delay", "stamp"),
    [
        (5, 7, 12),
        (5, -7, -2),
        (2**63 - 1, 1, -(2**63)),
        (-(2**63), -1, 2**63 - 1),
        (1_700_000_000_000, 2**63 - 1, 1_700_000_000_000 + 2**63 - 1 - 2**64),
    ],
)
def test_times_are_added_as_the_broker_adds_them(first: int, delay: int, stamp: int) -> None:
    """In 64 bits: a time that no message of ours could hold comes of no batch."""
    (record,) = record_format.decoded("examples", 0, batch_of(record_bytes(delay), 1, first))

    assert record.timestamp_ms == stamp


def test_a_delay_of_65_bits_is_cut_as_the_broker_cuts_it() -> None:
    """So kafka-python 3.0.12 writes two times in one batch that lie further apart than 64 bits hold."""
    first, lowest = 1_750_000_000_694, -(2**63)
    body = record_bytes(lowest - first)

    (record,) = record_format.decoded("labels", 0, batch_of(body, 1, first))

    assert record.timestamp_ms == 2 * first - 1


WILD = st.sampled_from((-(2**63), -(2**62), -1, 0, 1_750_000_000_694, 2**62, 2**63 - 1))


@given(st.lists(WILD, min_size=1, max_size=8))
def test_times_however_far_apart_are_read_as_they_were_written(stamps: list[int]) -> None:
    """Their difference may take more than 64 bits; what is read has wrapped around twice."""
    (batch,) = filled([Outgoing("examples", 0, None, b"v", (), stamp) for stamp in stamps], 10**9)

    read = record_format.decoded("examples", 0, MemoryRecords(sealed(batch)).next_batch())

    assert [record.timestamp_ms for record in read] == stamps


def test_a_batch_that_does_not_decompress_is_damaged() -> None:
    """Each library has errors of its own; all mean the same."""

    class Garbled:
        base_offset = 7

        def __iter__(self) -> Iterator[Any]:
            raise EOFError("compressed file ended before the end-of-stream marker was reached")

    with pytest.raises(CorruptRecordError, match="offset 7 cannot be decompressed: EOFError"):
        list(record_format.decoded("examples", 0, Garbled()))


@pytest.mark.parametrize("headers", [bytes_of(2**62), bytes_of(3) + b"\x02a", bytes_of(-1)])
def test_headers_that_are_not_there_are_damage(headers: bytes) -> None:
    """More than the record holds, cut short, fewer than none: nothing is read beyond the record."""
    body = record_bytes(0, headers + (b"\0" if headers == bytes_of(-1) else b""))

    with pytest.raises(CorruptRecordError):
        list(record_format.decoded("examples", 0, batch_of(body, 1)))


def test_any_number_of_headers_is_read_and_written_in_time() -> None:
    """In one pass: a record of many headers would hold its worker up until the group gives it up."""
    many = (("", None),) * 200_000
    written = record_format.encoded(0, 0, Outgoing("examples", 0, None, None, many))

    (record,) = record_format.decoded("examples", 0, batch_of(written, 1))

    assert record.headers == many
