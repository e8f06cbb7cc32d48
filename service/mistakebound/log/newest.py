"""The newest records of a partition, searched for from its end."""

from collections import deque
from collections.abc import Callable

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log

FIRST_LOOK = 16
"""Offsets. A transaction's marker takes one, so the very last is seldom a record."""


def newest_record(
    log: Log, topic: Topic, partition: int, wanted: Callable[[Record], bool] | None = None
) -> Record | None:
    """The committed record with the largest offset, of those that are `wanted`; None where there is none."""
    low, high = log.low_watermark(topic, partition), log.high_watermark(topic, partition)
    span = FIRST_LOOK
    while low < high:
        start = max(low, high - span)
        found = (
            filter(wanted, log.read(topic, partition, start, high))
            if wanted
            else log.read(topic, partition, start, high)
        )
        newest = next(iter(deque(found, maxlen=1)), None)
        if newest is not None or start == low:
            return newest
        span *= 4
    return None


def newest_records(log: Log, topic: Topic, partition: int, most: int) -> list[Record]:
    """The committed records with the largest offsets, at most so many, in order. It waits for no open transaction:
    only what lies below the last stable offset is looked at."""
    low, end = log.low_watermark(topic, partition), log.stable_ends([(topic, partition)])[topic, partition]
    span = most
    while low < end:
        start = max(low, end - span)
        newest = deque(log.read(topic, partition, start, end), maxlen=most)
        if len(newest) == most or start == low:
            return list(newest)
        span *= 4  # markers and aborted records took the rest
    return []
