"""Reading a log's committed records: a range of offsets, or several partitions in order of record time."""

import heapq
from collections.abc import Iterable, Iterator

from mistakebound.core.records import TOPICS, Record, Topic
from mistakebound.log.protocol import Log

ENDS: tuple[Topic, ...] = ("outcomes", "updates", "predictions", "dead-letters", "labels", "examples")
"""The order in which topics' ends are asked for. A worker may be at work: whatever `outcomes` account for up to the end
that was asked for first must lie within the ends asked for later."""
PIECE_OFFSETS = 2_000
"""Held in memory for each partition that is being read."""


def read_range(log: Log, topic: Topic, partition: int, start: int, stop: int) -> Iterator[Record]:
    """Records with offsets in [start, stop), in short pieces: one connection serves all that is read side by side."""
    for first in range(start, stop, PIECE_OFFSETS):
        yield from list(log.read(topic, partition, first, min(first + PIECE_OFFSETS, stop)))


def read_merged(log: Log, topics: Iterable[Topic]) -> Iterator[Record]:
    """All records of these topics, by record time, up to the ends that all partitions have before the first read.

    A record whose time lies below an earlier one of its own partition counts as of that time, so offset
    order is kept. Equal times: examples, labels, then the worker's topics; then partition.
    """
    wanted = [(topic, p) for topic in topics for p in range(log.partitions)]
    ends = {at: log.high_watermark(*at) for at in sorted(wanted, key=lambda at: (ENDS.index(at[0]), at[1]))}
    readers = [read_range(log, *at, log.low_watermark(*at), ends[at]) for at in wanted]
    for _, record in heapq.merge(*map(_with_sort_keys, readers), key=lambda pair: pair[0]):
        yield record


def _with_sort_keys(records: Iterable[Record]) -> Iterator[tuple[tuple[int, int, int, int], Record]]:
    newest = -1
    for record in records:
        newest = max(newest, record.timestamp_ms)
        yield (newest, TOPICS.index(record.topic), record.partition, record.offset), record
