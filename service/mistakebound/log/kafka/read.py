"""Reads by offset, outside the group: to a bound, or on and on.

`read` is bounded by the high watermark, not by the last stable offset: a reader that stopped at the
latter would silently miss what is committed above another worker's open transaction. It ends when the
client's *position* has reached the bound, for the last offsets may be transaction markers.

This module is never compiled: a compiled generator that is thrown away unfinished does not run its `finally`, and
whoever wants one record throws its read away.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Protocol

from mistakebound.core.records import Record, Topic, TopicPartition
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.ports import Fetcher
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Log, OffsetLost, Unreachable

POLL_S = 0.05
IDLE_S = 0.5
STUCK_S = 60.0


class MakeFetcher(Protocol):
    def __call__(self, *, follows: bool) -> Fetcher:
        """As a Kafka library's `fetcher`."""


class Reader:
    """Lends its fetchers to reads, so that the many short reads of a rebuild connect once.

    It closes them all itself: a read that was broken off may be held by a traceback until the interpreter
    ends, where kafka-python's own thread is gone and its closing would wait forever.
    """

    def __init__(self, make: MakeFetcher, names: Names, log: Log, watchdog: Watchdog) -> None:
        self._make = make
        self._names = names
        self._log = log
        self._watchdog = watchdog
        self._idle: dict[bool, list[Fetcher]] = {False: [], True: []}
        """By whether they were made to follow."""
        self._lent: set[Fetcher] = set()
        self._closed = False

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None, wait_s: float
    ) -> Iterator[Record]:
        """Committed records of start <= offset < stop, at most to the high watermark as it is now."""
        high = self._checked(topic, partition, start)
        return self._records((topic, partition), start, high if stop is None else min(stop, high), wait_s)

    def follow(self, starts: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        """Batches from these offsets on, until closed; an empty one after half a second without records."""
        for (topic, partition), start in starts.items():
            self._checked(topic, partition, start)
        return self._batches(starts)

    def close(self) -> None:
        """Close all fetchers, those of reads that were broken off too."""
        self._closed = True
        with self._watchdog.limit(STUCK_S, "close the readers"):
            for fetcher in (*self._idle[False], *self._idle[True], *self._lent):
                fetcher.close()

    def _records(
        self, topic_partition: TopicPartition, start: int, stop: int, wait_s: float
    ) -> Iterator[Record]:
        if start >= stop:
            return
        doing = f"read {self._spelled(topic_partition)}"
        fetcher = self._lend(follows=False)
        position, deadline = start, time.monotonic() + wait_s
        try:
            self._start(fetcher, {topic_partition: start}, doing)
            while position < stop:
                with self._watchdog.limit(STUCK_S, doing):
                    records = fetcher.fetch(POLL_S)
                for record in records:
                    if record.offset >= stop:
                        return
                    yield record
                now = time.monotonic()
                with self._watchdog.limit(STUCK_S, doing):
                    reached = fetcher.position()
                if reached > position:
                    position, deadline = reached, now + wait_s
                elif now > deadline:
                    raise Unreachable(
                        f"{doing}: no progress at offset {position} of {stop} for {wait_s:g} s; a "
                        "transaction is open below it, or the broker is away"
                    )
        finally:
            self._take_back(fetcher, doing, follows=False)

    def _batches(self, starts: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        if not starts:
            while True:
                time.sleep(IDLE_S)
                yield []
        doing = "follow " + ", ".join(map(self._spelled, starts))
        fetcher = self._lend(follows=True)
        try:
            self._start(fetcher, starts, doing)
            while True:
                with self._watchdog.limit(STUCK_S, doing):
                    records = fetcher.fetch(IDLE_S)
                yield records
        finally:
            self._take_back(fetcher, doing, follows=True)

    def _lend(self, *, follows: bool) -> Fetcher:
        idle = self._idle[follows]
        fetcher = idle.pop() if idle else self._make(follows=follows)
        self._lent.add(fetcher)
        return fetcher

    def _start(self, fetcher: Fetcher, starts: Mapping[TopicPartition, int], doing: str) -> None:
        with self._watchdog.limit(STUCK_S, doing):
            fetcher.start(starts, doing)

    def _take_back(self, fetcher: Fetcher, doing: str, *, follows: bool) -> None:
        self._lent.discard(fetcher)
        if not self._closed:
            with self._watchdog.limit(STUCK_S, doing):
                fetcher.rest()
            self._idle[follows].append(fetcher)

    def _checked(self, topic: Topic, partition: int, start: int) -> int:
        """The partition's high watermark. Raises OffsetLost where `start` does not lie within its log."""
        high = self._log.high_watermark(topic, partition)
        low = self._log.low_watermark(topic, partition)
        if not low <= start <= high:
            raise OffsetLost(
                f"offset {start} of {self._spelled((topic, partition))} is needed, the log holds {low} to {high}: "
                "records were deleted, or the topic was made anew; restore it, or start a new prefix"
            )
        return high

    def _spelled(self, topic_partition: TopicPartition) -> str:
        topic, partition = topic_partition
        return f"{self._names.to_broker[topic]}-{partition}"
