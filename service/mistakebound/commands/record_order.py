"""The order of a recording's records. Pure."""

import heapq
from collections.abc import Iterable, Iterator

from mistakebound.core.records import TOPICS, Record

_RANK = {topic: rank for rank, topic in enumerate(TOPICS)}

_SortKey = tuple[int, int, int, int]


def merge(partitions: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """Merge the topics' partitions, each in offset order, by record time.

    A record whose time lies below an earlier one of its own partition counts as of that time, so offset
    order is kept. Equal times: examples, labels, then the worker's topics; then partition. Holds one
    record of each partition of each topic.
    """
    for _, record in heapq.merge(*map(_with_sort_keys, partitions), key=lambda pair: pair[0]):
        yield record


def _with_sort_keys(records: Iterable[Record]) -> Iterator[tuple[_SortKey, Record]]:
    newest = -1
    for record in records:
        newest = max(newest, record.timestamp_ms)
        yield (newest, _RANK[record.topic], record.partition, record.offset), record
