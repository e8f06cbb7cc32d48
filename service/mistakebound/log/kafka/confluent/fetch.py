"""librdkafka as a `Fetcher`.

The client tells its position by an end-of-partition event, once it stands at the last stable offset and has
passed the transaction markers below it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset

from mistakebound.core.records import Record, Topic, TopicPartition
from mistakebound.log.kafka.confluent.errors import PASSING, in_our_words, translated
from mistakebound.log.kafka.confluent.second_reading import Again, SecondReading
from mistakebound.log.kafka.names import BrokerPartition, Names

MAX_RECORDS = 4_000
METADATA_S = 1.0

_headers_of = methodcaller("headers")
"""Where a name is not UTF-8 the client returns a list with holes, in which the interpreter would crash, and says so by
an exception on the side. A plain call of the method overlooks that exception (CPython 3.11 to 3.14), this one raises it.
"""


def record_of(topic: Topic, partition: int, message: Any, again: Again) -> Record:
    """A message of this partition as the core knows it, by `again` where the client cannot give its headers.

    Each method of a message is called once: the calls are most of what a record costs on its way in (0.5 of 0.8 us).
    """
    offset, (kind, time_ms) = message.offset(), message.timestamp()
    try:
        headers = _headers_of(message)
    except SystemError:
        return again(topic, partition, offset)
    return Record(
        topic,
        partition,
        offset,
        time_ms if kind else -1,
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
    )


def consume(consumer: Consumer, timeout_s: float) -> list[Any]:
    """What is there; when nothing is, the first that comes within `timeout_s` with what came along.

    By itself the client waits until as many as asked for are there, or the time is up.
    """
    found = consumer.consume(MAX_RECORDS, 0)
    if not found and timeout_s > 0:
        found = consumer.consume(1, timeout_s)
        if found:
            found += consumer.consume(MAX_RECORDS - 1, 0)
    return list(found)


class ConfluentFetcher:
    """One consumer outside the group."""

    def __init__(self, consumer: Consumer, names: Names, again: SecondReading) -> None:
        self._consumer = consumer
        self._again = again
        self._names = names
        self._doing = ""
        self._known: set[str] = set()
        self._position = -1
        self._alone: BrokerPartition | None = None
        self._failed: KafkaError | None = None

    def start(self, starts: Mapping[TopicPartition, int], doing: str) -> None:
        self._doing = doing
        self._position, self._failed = max(starts.values()), None
        self._assign({(self._names.to_broker[topic], p): offset for (topic, p), offset in starts.items()})

    def fetch(self, timeout_s: float) -> Sequence[Record]:
        """An error among the messages is raised once the records before it have been returned."""
        if self._failed is not None:
            raise in_our_words(self._doing, self._failed)
        records: list[Record] = []
        with translated(self._doing):
            messages = consume(self._consumer, timeout_s)
        position = self._position
        for message in messages:
            found = message.error()
            if found is None:
                topic = self._names.to_logical[message.topic()]
                record = record_of(topic, message.partition(), message, self._again.record)
                records.append(record)
                position = record.offset + 1
            elif found.code() == KafkaError._PARTITION_EOF:
                position = max(position, message.offset())
            elif (
                found.code() == KafkaError._AUTO_OFFSET_RESET
                and self._alone is not None
                and (message.topic(), message.partition(), message.offset()) != (*self._alone, position)
            ):
                # Behind a damaged batch librdkafka 2.16 asks for an offset that it has read from the damage. The answer
                # may come amid the next read, of another partition even, which then may stand still.
                self._assign({self._alone: position})
            elif not found.retriable() and found.code() not in PASSING:
                if not records:
                    raise in_our_words(self._doing, found)
                self._failed = found
                break
        self._position = position
        return records

    def position(self) -> int:
        return self._position

    def rest(self) -> None:
        self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()
        self._again.close()

    def _assign(self, wanted: Mapping[BrokerPartition, int]) -> None:
        self._alone = next(iter(wanted)) if len(wanted) == 1 else None
        # Of a topic that it meets for the first time, the client asks once a second where its partitions are (its issue
        # 3202), and a takeover reads three: asked here it knows at once. Where nobody answers, the read will say so.
        for topic in {topic for topic, _ in wanted} - self._known:
            with suppress(KafkaException):
                self._consumer.list_topics(topic, METADATA_S)
                self._known.add(topic)
        with translated(self._doing):
            self._consumer.assign([PartitionOffset(*at, offset) for at, offset in wanted.items()])
