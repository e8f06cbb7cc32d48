"""Reads by offset, outside the group, by way of librdkafka: to a bound, or on and on.

The rules are those of `mistakebound.log.kafka.read`: a read is bounded by the high watermark and ends when
the client's *position* has reached the bound. librdkafka tells its position by an end-of-partition event
once it stands at the last stable offset, transaction markers included.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from mistakebound.core.records import Record, Topic
from mistakebound.log.kafka.admin import Admin
from mistakebound.log.kafka.confluent.clients import Clients
from mistakebound.log.kafka.confluent.errors import PASSING, in_our_words, translated
from mistakebound.log.kafka.connect import Names
from mistakebound.log.kafka.read import IDLE_S, checked_start
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import LogError, Unreachable

POLL_S = 0.05
STUCK_S = 60.0
MAX_RECORDS = 4_000


def record_of(names: Names, message: Any) -> Record:
    """A message as the core knows it."""
    kind, time_ms = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(
        names.to_logical[message.topic()],
        message.partition(),
        message.offset(),
        time_ms if kind else -1,
        message.key(),
        message.value(),
        headers,
    )


class Reader:
    """One consumer for each read that is under way; it closes them all itself, as the other client's does."""

    def __init__(self, clients: Clients, names: Names, admin: Admin, watchdog: Watchdog) -> None:
        self._clients = clients
        self._names = names
        self._admin = admin
        self._watchdog = watchdog
        self._idle: list[Consumer] = []
        self._lent: set[Consumer] = set()
        self._closed = False

    def read(
        self, topic: Topic, partition: int, start: int, stop: int | None, wait_s: float
    ) -> Iterator[Record]:
        """Committed records of start <= offset < stop, at most to the high watermark as it is now."""
        high = checked_start(self._admin, self._names, topic, partition, start)
        bound = high if stop is None else min(stop, high)
        return self._records(self._names.to_broker[topic], partition, start, bound, wait_s)

    def follow(self, starts: Mapping[tuple[Topic, int], int]) -> Generator[Sequence[Record]]:
        """Batches from these offsets on, until closed; an empty one after half a second without any."""
        for (topic, partition), start in starts.items():
            checked_start(self._admin, self._names, topic, partition, start)
        places = [
            TopicPartition(self._names.to_broker[topic], partition, start)
            for (topic, partition), start in starts.items()
        ]
        return self._batches(places)

    def close(self) -> None:
        """Close all consumers, those of reads that were broken off too."""
        self._closed = True
        for consumer in (*self._idle, *self._lent):
            consumer.close()

    def _records(self, name: str, partition: int, start: int, stop: int, wait_s: float) -> Iterator[Record]:
        if start >= stop:
            return
        doing = f"read {name}-{partition}"
        consumer = self._lend(self._idle.pop() if self._idle else None)
        position, deadline = start, time.monotonic() + wait_s
        try:
            with translated(doing):
                consumer.assign([TopicPartition(name, partition, start)])
            while position < stop:
                reached = position
                for message in self._consume(consumer, POLL_S, doing):
                    offset = message.offset()
                    if (error := message.error()) is not None:
                        reached = max(reached, _end(error, offset, doing))
                        continue
                    if offset >= stop:
                        return
                    yield record_of(self._names, message)
                    reached = offset + 1
                now = time.monotonic()
                if reached > position:
                    position, deadline = reached, now + wait_s
                elif now > deadline:
                    raise Unreachable(
                        f"{doing}: no progress at offset {position} of {stop} for {wait_s:g} s; a "
                        "transaction is open below it, or the broker is away"
                    )
        finally:
            if self._back(consumer):
                consumer.unassign()
                self._idle.append(consumer)

    def _lend(self, idle: Consumer | None = None) -> Consumer:
        consumer = self._clients.reader(_ignored) if idle is None else idle
        self._lent.add(consumer)
        return consumer

    def _back(self, consumer: Consumer) -> bool:
        """Take a consumer back; whether it is still open."""
        self._lent.discard(consumer)
        return not self._closed

    def _batches(self, places: Sequence[TopicPartition]) -> Generator[Sequence[Record]]:
        if not places:
            while True:
                time.sleep(IDLE_S)
                yield []
        doing = "follow " + ", ".join(f"{place.topic}-{place.partition}" for place in places)
        consumer = self._lend()
        try:
            with translated(doing):
                consumer.assign(list(places))
            while True:
                batch = []
                for message in self._consume(consumer, IDLE_S, doing):
                    if (error := message.error()) is not None:
                        _end(error, message.offset(), doing)
                    else:
                        batch.append(record_of(self._names, message))
                yield batch
        finally:
            if self._back(consumer):
                consumer.close()

    def _consume(self, consumer: Consumer, timeout_s: float, doing: str) -> list[Any]:
        with self._watchdog.limit(STUCK_S, doing), translated(doing):
            return consume(consumer, timeout_s)


def consume(consumer: Consumer, timeout_s: float) -> list[Any]:
    """What is there; when nothing is, the first that comes within `timeout_s` with what came along.

    By itself the client waits until so many as asked for are there, or the time is up.
    """
    found = consumer.consume(MAX_RECORDS, 0)
    if not found and timeout_s > 0:
        found = consumer.consume(1, timeout_s)
        if found:
            found += consumer.consume(MAX_RECORDS - 1, 0)
    return list(found)


def _end(error: KafkaError, offset: int, doing: str) -> int:
    if error.code() == KafkaError._PARTITION_EOF:
        return offset
    if error.retriable() or error.code() in PASSING:
        return -1
    raised: LogError = in_our_words(doing, error)
    raise raised


def _ignored(error: KafkaError) -> None:
    """What ends a read comes with its messages; the rest the client mends itself."""
