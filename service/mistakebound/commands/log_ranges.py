"""Reading a range of a log in short pieces, so that one connection serves all that is read side by side."""

from collections.abc import Iterator

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log

PIECE_OFFSETS = 2_000
"""Held in memory for each partition that is being read."""


def read_range(log: Log, topic: Topic, partition: int, start: int, stop: int) -> Iterator[Record]:
    """Committed records with offsets in [start, stop), each piece read to its end before it is handed on."""
    for first in range(start, stop, PIECE_OFFSETS):
        yield from list(log.read(topic, partition, first, min(first + PIECE_OFFSETS, stop)))
