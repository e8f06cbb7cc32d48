"""The newest record of a partition, searched for from its end."""

from collections import deque

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log

FIRST_LOOK = 16
"""Offsets. A transaction's marker takes one, so the very last is seldom a record."""


def newest_record(log: Log, topic: Topic, partition: int) -> Record | None:
    """The committed record with the largest offset; None where there is none."""
    low, high = log.low_watermark(topic, partition), log.high_watermark(topic, partition)
    span = FIRST_LOOK
    while low < high:
        start = max(low, high - span)
        newest = next(iter(deque(log.read(topic, partition, start, high), maxlen=1)), None)
        if newest is not None or start == low:
            return newest
        span *= 4
    return None
