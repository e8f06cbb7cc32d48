"""Whole batches are what the client itself would write and read, byte for byte."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError, NotLeaderForPartitionError
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
