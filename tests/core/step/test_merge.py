"""Inputs in record-time order: one order, whatever the batches."""

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.records import Record, Topic, TopicPartition
from mistakebound.core.step.merge import Merge

BOTH: set[TopicPartition] = {("examples", 0), ("labels", 0)}


def inputs(topic: Topic, times: list[int], partition: int = 0) -> list[Record]:
    """Records at offsets 0, 1, ... with these times."""
    return [Record(topic, partition, offset, at, None, b"") for offset, at in enumerate(times)]


def drain(merge: Merge, drained: set[TopicPartition], partition: int = 0) -> list[tuple[str, int]]:
    """All that can be taken, as (topic, offset)."""
    taken = []
    head = merge.peek(partition, drained)
    for record in merge.take(partition, drained):
        assert record is head
        taken.append((record.topic, record.offset))
        head = merge.peek(partition, drained)
    assert head is None
    return taken


def merged(examples: list[int], labels: list[int]) -> list[str]:
    """Letters in order: e for an example, l for a label."""
    merge = Merge([0])
    merge.add(inputs("labels", labels) + inputs("examples", examples))
    return [topic[0] for topic, _ in drain(merge, BOTH)]


def test_the_older_record_comes_first() -> None:
    """Record time, not the order of arrival."""
    assert merged([1, 4], [2, 3, 5]) == ["e", "l", "l", "e", "l"]


def test_at_equal_times_the_example_comes_first() -> None:
    """So a label as fast as its example finds it."""
    assert merged([5, 5], [5, 5]) == ["e", "e", "l", "l"]


def test_within_a_topic_the_offset_decides() -> None:
    """Producers' clocks may go back: a partition's records never change places."""
    assert merged([9, 1], [3, 2]) == ["l", "l", "e", "e"]


def test_a_record_without_a_time_does_not_wait() -> None:
    """Its time is negative, so it is the older of the two."""
    assert merged([5, -1], [-1, 6]) == ["l", "e", "e", "l"]


def test_an_empty_input_holds_the_other_back() -> None:
    """Something older may still come, until it is known that nothing will."""
    merge = Merge([0])
    merge.add(inputs("labels", [1]))
    assert merge.dry() == [("examples", 0)]
    assert drain(merge, set()) == []
    assert drain(merge, {("labels", 0)}) == []
    assert drain(merge, {("examples", 0)}) == [("labels", 0)]


def test_an_input_that_runs_dry_stops_the_merge_there() -> None:
    """Each input is asked about again, in its own partition."""
    merge = Merge([0, 1])
    merge.add(inputs("examples", [1, 5]) + inputs("labels", [2]) + inputs("examples", [1], partition=1))
    assert drain(merge, set()) == [("examples", 0), ("labels", 0)]
    assert merge.dry() == [("labels", 0), ("labels", 1)]
    assert drain(merge, {("labels", 1)}) == []
    assert drain(merge, {("labels", 1)}, partition=1) == [("examples", 0)]
    assert drain(merge, {("labels", 0)}) == [("examples", 1)]
    assert merge.dry() == []


def test_a_record_put_back_is_the_next_one_again() -> None:
    """A record that could not be handled yet, of either input."""
    merge = Merge([0])
    merge.add(inputs("examples", [1, 3]) + inputs("labels", [2]))
    for place in range(3):
        merge.put_back(next(merge.take(0, BOTH)))
        assert [record.timestamp_ms for record in [next(merge.take(0, BOTH))]] == [place + 1]
    assert merge.buffered() == []


def test_only_partitions_with_records_have_something_to_do() -> None:
    """In ascending order, whatever the order of arrival."""
    merge = Merge([2, 0, 1])
    assert merge.buffered() == []
    merge.add(inputs("labels", [1], partition=2) + inputs("examples", [1], partition=0))
    assert merge.buffered() == [0, 2]


def test_an_input_over_its_capacity_is_paused_until_it_is_half_empty() -> None:
    """What runs ahead waits in the log, not in memory; and pausing does not flip with every record."""
    merge = Merge([0], capacity=4)
    merge.add(inputs("labels", [1, 2, 3]))
    assert merge.pausing() == (set(), set())
    merge.add(inputs("labels", [1, 2, 3, 4])[3:])
    assert merge.pausing() == ({("labels", 0)}, set())
    assert merge.pausing() == (set(), set())
    drained: set[TopicPartition] = {("examples", 0)}
    for left in (3, 2):
        next(merge.take(0, drained))
        assert merge.pausing() == (set(), {("labels", 0)} if left == 2 else set())
    assert merge.paused == set()


def test_large_records_are_paused_by_their_bytes() -> None:
    """All inputs share the capacity in bytes; what is taken makes room again."""
    merge = Merge([0, 1], capacity=100, capacity_bytes=4_000)
    one = Record("examples", 0, 0, 1, b"k" * 100, b"v" * 300, (("name", b"c" * 96),))
    assert merge.add([one]) == 500
    assert merge.pausing() == (set(), set())
    merge.add([one._replace(offset=1)])
    assert merge.pausing() == ({("examples", 0)}, set())
    merge.add([one._replace(partition=1)])
    assert merge.pausing() == (set(), set())
    next(merge.take(0, {("labels", 0)}))
    assert merge.pausing() == (set(), {("examples", 0)})


times = st.lists(st.integers(-1, 30), max_size=25)


@given(times, times, st.data())
def test_a_complete_stream_has_one_order_whatever_the_batches(
    examples: list[int], labels: list[int], data: Any
) -> None:
    """Records come in any pieces; an empty input counts as drained only when all of it has come."""
    whole = Merge([0])
    coming_in: dict[TopicPartition, list[Record]] = {
        ("examples", 0): inputs("examples", examples),
        ("labels", 0): inputs("labels", labels),
    }
    whole.add([record for each in coming_in.values() for record in each])
    expected = drain(whole, BOTH)

    pieces = Merge([0], capacity=5)
    taken = []
    for _ in count():
        for topic, partition in sorted(BOTH - pieces.paused):
            coming = coming_in[topic, partition]
            size = data.draw(st.integers(1 if coming else 0, 4))
            pieces.add(coming[:size])
            del coming[:size]
        drained = {each for each in pieces.dry() if not coming_in[each]}
        taken += drain(pieces, drained)
        pieces.pausing()
        if not any(coming_in.values()) and not pieces.buffered():
            break
    assert taken == expected
    assert [offset for topic, offset in taken if topic == "labels"] == list(range(len(labels)))
