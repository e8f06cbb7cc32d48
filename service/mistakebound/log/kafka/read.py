"""Reads by offset, outside the group: to a bound, or on and on.

`read` is bounded by the high watermark, not by the last stable offset: a reader that stopped at the
latter would silently miss what is committed above another worker's open transaction. It ends when the
client's *position* has reached the bound, for the last offsets may be transaction markers.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from mistakebound.core.records import Record, Topic
from mistakebound.log.kafka.admin import Admin
from mistakebound.log.kafka.batches import deliver_records
from mistakebound.log.kafka.connect import Connection, Names
from mistakebound.log.kafka.errors import translated
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import OffsetLost, Unreachable

POLL_MS = 50
IDLE_S = 0.5
STUCK_S = 60.0
MAX_RECORDS = 4_000


class Reader:
    """Lends its consumers to reads, so that the many short reads of a rebuild connect once.

    It closes them all itself: a read that was broken off may be held by a traceback until the interpreter
    ends, where a client's own thread is gone and its closing would wait for ever.
    """

    def __init__(self, connection: Connection, names: Names, admin: Admin, watchdog: Watchdog) -> None:
        self._connection = connection
        self._names = names
        self._admin = admin
        self._watchdog = watchdog
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._closed = False

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None, wait_s: float
    ) -> Iterator[Record]:
        """Committed records of start <= offset < stop, at most to the high watermark as it is now."""
        high = checked_start(self._admin, self._names, topic, partition, start)
        bound = high if stop is None else min(stop, high)
        return self._records(self._names.at(topic, partition), start, bound, wait_s)

    def follow(self, starts: Mapping[tuple[Topic, int], int]) -> Generator[Sequence[Record]]:
        """Batches from these offsets on, until closed; an empty one after half a second without any."""
        for (topic, partition), start in starts.items():
            checked_start(self._admin, self._names, topic, partition, start)
        places = {self._names.at(*side): start for side, start in starts.items()}
        return self._batches(places)

    def close(self) -> None:
        """Close all consumers, those of reads that were broken off too."""
        self._closed = True
        for consumer in (*self._idle, *self._lent):
            consumer.close(autocommit=False)

    def _records(self, place: TopicPartition, start: int, stop: int, wait_s: float) -> Iterator[Record]:
        if start >= stop:
            return
        doing = f"read {place.topic}-{place.partition}"
        consumer = self._lend(self._idle.pop() if self._idle else None)
        position, deadline = start, time.monotonic() + wait_s
        try:
            with translated(doing, _right([place])):
                consumer.assign([place])
                consumer.seek(place, start)
            while position < stop:
                for fetched in self._poll(consumer, POLL_MS, doing, [place]).get(place, ()):
                    if fetched.offset >= stop:
                        return
                    yield fetched
                now = time.monotonic()
                reached = self._position(consumer, place, doing)
                if reached > position:
                    position, deadline = reached, now + wait_s
                elif now > deadline:
                    raise Unreachable(
                        f"{doing}: no progress at offset {position} of {stop} for {wait_s:g} s; a "
                        "transaction is open below it, or the broker is away"
                    )
        finally:
            if self._back(consumer):
                self._idle.append(consumer)

    def _lend(self, idle: Any = None) -> Any:
        consumer = idle or deliver_records(self._connection.reader(), self._names.to_logical)
        self._lent.add(consumer)
        return consumer

    def _back(self, consumer: Any) -> bool:
        """Take a consumer back; whether it is still open."""
        self._lent.discard(consumer)
        return not self._closed

    def _batches(self, places: Mapping[TopicPartition, int]) -> Generator[Sequence[Record]]:
        if not places:
            while True:
                time.sleep(IDLE_S)
                yield []
        doing = "follow " + ", ".join(f"{place.topic}-{place.partition}" for place in places)
        consumer = self._lend()
        try:
            with translated(doing):
                consumer.assign(list(places))
                for place, start in places.items():
                    consumer.seek(place, start)
            while True:
                fetched = self._poll(consumer, int(IDLE_S * 1000), doing, list(places))
                yield [record for batch in fetched.values() for record in batch]
        finally:
            if self._back(consumer):
                consumer.close(autocommit=False)

    def _poll(self, consumer: Any, timeout_ms: int, doing: str, places: Sequence[TopicPartition]) -> Any:
        with self._watchdog.limit(STUCK_S, doing), translated(doing, _right(places)):
            return consumer.poll(timeout_ms=timeout_ms, max_records=MAX_RECORDS)

    def _position(self, consumer: Any, place: TopicPartition, doing: str) -> int:
        with self._watchdog.limit(STUCK_S, doing), translated(doing, _right([place])):
            return int(consumer.position(place, timeout_ms=1_000))


def _right(places: Sequence[TopicPartition]) -> str:
    return f"Read on topic {', '.join(sorted({place.topic for place in places}))}"


def checked_start(admin: Admin, names: Names, topic: Topic, partition: int, start: int) -> int:
    """The partition's high watermark. Raises OffsetLost where `start` does not lie within its log."""
    high, low = admin.high_watermark(topic, partition), admin.low_watermark(topic, partition)
    if not low <= start <= high:
        name = names.to_broker[topic]
        raise OffsetLost(
            f"offset {start} of {name}-{partition} is needed, the log holds {low} to {high}: records "
            "were deleted, or the topic was made anew; restore it, or start a new prefix"
        )
    return high
