"""Reading a log's committed records: a range of offsets, or several partitions in order of record time."""

import heapq
from collections.abc import Iterable, Iterator

from mistakebound.core.records import INPUTS, TOPICS, Record, Topic
from mistakebound.log.protocol import Log

PIECE_OFFSETS = 2_000
"""Held in memory for each partition that is being read."""


def read_range(log: Log, topic: Topic, partition: int, start: int, stop: int) -> Iterator[Record]:
    """Records with offsets in [start, stop), in short pieces: one connection serves all that is read side by side."""
    for first in range(start, stop, PIECE_OFFSETS):
        yield from list(log.read(topic, partition, first, min(first + PIECE_OFFSETS, stop)))


def readable_end(log: Log, topic: Topic, partition: int) -> int:
    """Where reading of a topic may stop, as it is now.

    Of the inputs it is the last stable offset: a producer's transaction may be open for as long as it likes, and a
    read up to the high watermark would wait for its end. Those of the workers end within seconds, and what is
    committed above one must not be missed.
    """
    if topic in INPUTS:
        return log.stable_ends([(topic, partition)])[topic, partition]
    return log.high_watermark(topic, partition)


def read_merged(log: Log, topics: Iterable[Topic]) -> Iterator[Record]:
    """All records of these topics, by record time, up to the ends that all partitions have before the first read.

    A record whose time lies below an earlier one of its own partition counts as of that time, so offset
    order is kept. Equal times: examples, labels, then the worker's topics; then partition.
    """
    readers = [
        read_range(log, topic, p, log.low_watermark(topic, p), readable_end(log, topic, p))
        for topic in topics
        for p in range(log.partitions)
    ]
    for _, record in heapq.merge(*map(_with_sort_keys, readers), key=lambda pair: pair[0]):
        yield record


def _with_sort_keys(records: Iterable[Record]) -> Iterator[tuple[tuple[int, int, int, int], Record]]:
    newest = -1
    for record in records:
        newest = max(newest, record.timestamp_ms)
        yield (newest, TOPICS.index(record.topic), record.partition, record.offset), record
