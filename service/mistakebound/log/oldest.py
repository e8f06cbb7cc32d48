"""What a partition still holds, while retention deletes its oldest records."""

from collections.abc import Iterator
from itertools import chain

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log, OffsetLost


def from_oldest(log: Log, topic: Topic, partition: int) -> Iterator[Record]:
    """All committed records, from the oldest that is there; raises OffsetLost where later ones are deleted before they
    are read."""
    low = log.low_watermark(topic, partition)
    while True:
        try:
            records = log.read(topic, partition, low)
            first = next(records, None)
        except OffsetLost as error:
            low = moved_from(log, topic, partition, low, error)
        else:
            return chain(() if first is None else (first,), records)


def moved_from(log: Log, topic: Topic, partition: int, low: int, error: OffsetLost) -> int:
    """Where the partition begins by now. Raises the error unless that is above `low`."""
    moved = log.low_watermark(topic, partition)
    if moved <= low:
        raise error
    return moved
