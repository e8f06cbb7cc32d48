"""Reading a log's committed records: a range of offsets, or several partitions in order of record time."""

import heapq
from collections.abc import Callable, Iterable, Iterator

from mistakebound.core.messages.schema import read_outcomes
from mistakebound.core.records import INPUTS, TOPICS, Record, Topic
from mistakebound.log.oldest import from_oldest
from mistakebound.log.protocol import Log, Refused

ENDS: tuple[Topic, ...] = ("outcomes", "updates", "predictions", "dead-letters", "labels", "examples")
"""The order in which topics' ends are asked for. A worker may be at work: whatever `outcomes` account for up to the end
that was asked for first must lie within the ends asked for later."""
PIECE_OFFSETS = 2_000
"""Held in memory for each partition that is being read."""


def read_range(log: Log, topic: Topic, partition: int, start: int, stop: int) -> Iterator[Record]:
    """Records with offsets in [start, stop), in short pieces: one connection serves all that is read side by side.

    A damaged batch of an input that a worker passed, as `outcomes` says, is passed here, too.
    """
    gaps: list[tuple[int, int]] | None = None
    parts = [(start, stop)]
    while parts:
        first, end = parts.pop(0)
        piece_end = min(first + PIECE_OFFSETS, end)
        if first >= piece_end:
            continue
        try:
            records = list(log.read(topic, partition, first, piece_end))
        except Refused:
            if gaps is not None or not (gaps := _passed(log, topic, partition)):
                raise
            parts = [*_between(gaps, first, stop)]
            continue
        yield from records
        parts.insert(0, (piece_end, end))


def _passed(log: Log, topic: Topic, partition: int) -> list[tuple[int, int]]:
    """(first, last) offsets of an input that no worker could read, in order."""
    if topic not in INPUTS:
        return []
    found = []
    for record in from_oldest(log, "outcomes", partition):
        if b'"first":' in (record.value or b""):
            for decision in read_outcomes(record).decisions:
                last = decision.label_offset if topic == "labels" else decision.source
                if decision.first is not None and last is not None:
                    found.append((decision.first, last))
    return found


def _between(gaps: Iterable[tuple[int, int]], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The parts of [start, stop) outside the gaps."""
    for first, last in gaps:
        if start < first:
            yield start, min(first, stop)
        start = max(start, last + 1)
    if start < stop:
        yield start, stop


def readable_end(log: Log, topic: Topic, partition: int) -> int:
    """Where reading of a topic may stop, as it is now.

    Of the inputs it is the last stable offset: a producer's transaction may be open for as long as it likes, and a
    read up to the high watermark would wait for its end. Those of the workers end within seconds, and what is
    committed above one must not be missed.
    """
    if topic in INPUTS:
        return log.stable_ends([(topic, partition)])[topic, partition]
    return log.high_watermark(topic, partition)


def read_merged(
    log: Log, topics: Iterable[Topic], expect: Callable[[int], object] = bool
) -> Iterator[Record]:
    """All records of these topics, by record time, up to the ends that all partitions have before the first read.

    A record whose time lies below an earlier one of its own partition counts as of that time, so offset
    order is kept. Equal times: examples, labels, then the worker's topics; then partition. `expect` is told how many
    offsets there are, transactions' markers included.
    """
    wanted = [(topic, p) for topic in topics for p in range(log.partitions)]
    ends = {at: readable_end(log, *at) for at in sorted(wanted, key=lambda at: (ENDS.index(at[0]), at[1]))}
    starts = {at: log.low_watermark(*at) for at in wanted}
    expect(sum(ends[at] - starts[at] for at in wanted))
    readers = [read_range(log, *at, starts[at], ends[at]) for at in wanted]
    for _, record in heapq.merge(*map(_with_sort_keys, readers), key=lambda pair: pair[0]):
        yield record


def _with_sort_keys(records: Iterable[Record]) -> Iterator[tuple[tuple[int, int, int, int], Record]]:
    newest = -1
    for record in records:
        newest = max(newest, record.timestamp_ms)
        yield (newest, TOPICS.index(record.topic), record.partition, record.offset), record
