"""The newest records of a partition, searched for from its end."""

from collections import deque
from collections.abc import Callable

from mistakebound.core.records import Record, Topic
from mistakebound.log.oldest import moved_from
from mistakebound.log.protocol import Log, OffsetLost

FIRST_LOOK = 16
"""Offsets. A transaction's marker takes one, so the very last is seldom a record."""


def newest_record(
    log: Log, topic: Topic, partition: int, wanted: Callable[[Record], bool] | None = None
) -> Record | None:
    """The committed record with the largest offset, of those that are `wanted`; None where there is none."""
    low, high = log.low_watermark(topic, partition), log.high_watermark(topic, partition)
    found = _newest(log, topic, partition, low, high, 1, FIRST_LOOK, wanted)
    return found[0] if found else None


def newest_records(log: Log, topic: Topic, partition: int, most: int) -> list[Record]:
    """The committed records with the largest offsets, at most so many, in order. It waits for no open transaction:
    only what lies below the last stable offset is looked at."""
    low, end = log.low_watermark(topic, partition), log.stable_ends([(topic, partition)])[topic, partition]
    return _newest(log, topic, partition, low, end, most, most)


def _newest(
    log: Log,
    topic: Topic,
    partition: int,
    low: int,
    end: int,
    most: int,
    span: int,
    wanted: Callable[[Record], bool] | None = None,
) -> list[Record]:
    """Of [low, end) the last records, at most `most`; looked for in the last `span` offsets first."""
    while low < end:
        start = max(low, end - span)
        try:
            newest = deque(filter(wanted, log.read(topic, partition, start, end)), maxlen=most)
        except OffsetLost as error:  # deleted since it was asked where the log begins
            low = moved_from(log, topic, partition, low, error)
            continue
        if len(newest) == most or start == low:
            return list(newest)
        span *= 4  # markers and aborted records took the rest
    return []
