"""Membership of the group by way of librdkafka.

The guarantees are those of `mistakebound.log.kafka.kafka_python.session`. What the group assigns and what the
client fetches are two things: the client answers an assignment with an empty list, and is given only what `seek`
has placed, all at once by the next `poll`. So nothing is ever delivered from an offset that was not asked for.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset

from mistakebound.core.records import INPUTS, Position, Record, TopicPartition, Transaction
from mistakebound.log.kafka.confluent.errors import AUTH_REFUSED, PASSING, Errors, in_our_words, translated
from mistakebound.log.kafka.confluent.fetch import consume, record_of
from mistakebound.log.kafka.confluent.second_reading import SecondReading
from mistakebound.log.kafka.joining import Joining
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.names import BrokerPartition
from mistakebound.log.kafka.session_checks import check_together, check_topics, check_transaction
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Polled, Receipt, StaleGeneration, TopicDescription

METADATA_BYTES = 4_095
"""One less than a broker takes: the client sends a zero byte along."""
STUCK_S = 90.0
SLICE_S = 0.1


class ConfluentSession:
    """One process's membership, with its transactional writer. Not thread-safe."""

    def __init__(
        self,
        make: Callable[[Errors], Consumer],
        cluster: Cluster,
        partitions: int,
        writer: Writer,
        look_every_s: float,
    ) -> None:
        """`make` makes the group's member, not yet subscribed, with this listener for errors. Whether the inputs are still
        the same topics is looked at every `look_every_s`.
        """
        self._names = cluster.names
        self._cluster = cluster
        self._admin = cluster.admin
        self._watchdog = cluster.watchdog
        self._partitions = partitions
        self._writer = writer
        self._again = SecondReading(cluster)
        self._outside = Joining(cluster.connection.longest_join_s)
        self._joining, self._closing = True, False
        self._generation = self._count = 0
        self._member: Any = None
        self._assigned: frozenset[BrokerPartition] = frozenset()
        self._owned: tuple[int, ...] = ()
        self._next: dict[BrokerPartition, int] = {}
        """The next offset of what the client fetches, or is about to."""
        self._to_assign = False
        self._paused: set[BrokerPartition] = set()
        self._failed: KafkaError | None = None
        self._past_damage = False
        self._look_every_s, self._looked_s = look_every_s, time.monotonic()
        self._inputs = [self._names.to_broker[topic] for topic in INPUTS]
        self._ids = {each.name: each.id for each in self._described()}
        cluster.watch(partitions)
        self._consumer: Any = make(self._note)
        """A Consumer, whose stubs promise more than it keeps: before its first join it has no member id."""
        with self._watchdog.limit(STUCK_S, "subscribe"):
            self._consumer.subscribe(
                self._inputs, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )

    # While it closes, the client assigns and unassigns by itself. What a callback called of it then would fail, and Python
    # makes a SystemError of an error that comes out of compiled callbacks.

    def _on_assign(self, consumer: Consumer, assigned: list[PartitionOffset]) -> None:
        if self._closing:
            return
        consumer.assign([])
        self._assigned = frozenset((each.topic, each.partition) for each in assigned)
        # The generation's own, kept: read later, it might be a fresher one, or that of no member at all,
        # and the broker would take both.
        self._member = consumer.consumer_group_metadata()
        self._joining = False
        self._count += 1

    def _on_revoke(self, consumer: Consumer, _: list[PartitionOffset]) -> None:
        if self._closing:
            return
        consumer.unassign()
        self._joining = True

    def _note(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in AUTH_REFUSED:
            self._failed = error

    def poll(self, timeout_s: float) -> Polled:
        end = time.monotonic() + timeout_s
        records: list[Record] = []
        doing = "read examples and labels"
        with self._watchdog.limit(timeout_s + STUCK_S, "poll"), translated(doing):
            while not records and self._count == self._generation:
                if self._to_assign:
                    self._assign()
                left_s = max(0.0, end - time.monotonic())
                for message in consume(self._consumer, min(left_s, SLICE_S)):
                    self._take(message, records, doing)
                if self._failed is not None:
                    raise in_our_words(doing, self._failed)
                if left_s == 0:
                    break
        joined = self._count != self._generation
        self._outside.look(self._joining and not joined)
        if joined:
            self._adopt()
            return Polled(self._generation, self._owned, ())
        if time.monotonic() - self._looked_s >= self._look_every_s:
            self._look_at_topics()
        return Polled(self._generation, self._owned, records)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        self._writer.settle()
        return self._cluster.positions(sorted(partitions))

    def seek(self, partition: int, examples: int, labels: int) -> None:
        if partition not in self._owned:
            raise StaleGeneration(f"partition {partition} is not owned; poll again")
        for name, offset in zip(self._inputs, (examples, labels), strict=True):
            self._next[name, partition] = offset
        self._to_assign = True

    def drained(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {each for each, left in self.undelivered(topic_partitions).items() if not left}

    def undelivered(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked = [each for each in topic_partitions if self._at_broker(each) in self._next]
        ends = self._cluster.ends(asked) if asked else {}
        return {each: max(0, end - self._next[self._at_broker(each)]) for each, end in ends.items()}

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        paused = {self._at_broker(each) for each in topic_partitions}
        self._paused |= paused
        with self._watchdog.limit(STUCK_S, "pause"):
            self._consumer.pause(self._fetched(paused))

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        resumed = {self._at_broker(each) for each in topic_partitions}
        self._paused -= resumed
        with self._watchdog.limit(STUCK_S, "resume"):
            self._consumer.resume(self._fetched(resumed))

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        check_transaction(transaction, generation, self._count, self._owned, METADATA_BYTES)
        return Receipt(self._writer.write(transaction.outputs, transaction.positions, self._member))

    def pass_damage(self) -> None:
        self._past_damage = True

    def close(self, timeout_s: float) -> None:
        with self._watchdog.limit(timeout_s + STUCK_S, "leave the group"):
            self._writer.drop()
            if not self._closing:  # which may be for the second time
                self._hear_out(timeout_s)
            member = self._consumer.memberid() if self._joining else None
            self._closing = True
            self._consumer.close()
            self._again.close()
            self._joining = False
            if member:
                # Removed before it is closed, the client would join once more.
                self._admin.remove(member)

    def _hear_out(self, timeout_s: float) -> None:
        """Have the client tell what it knows of the group, and answer it.

        Told of it only while it closes, it may wait for ever until the answer is taken, with the interpreter's lock
        (librdkafka's issue 4884).
        """
        end = time.monotonic() + timeout_s
        known = None
        while known != (self._count, self._joining) and time.monotonic() < end:
            known = self._count, self._joining
            with suppress(KafkaException):
                while consume(self._consumer, 0.0) and time.monotonic() < end:
                    pass

    def _take(self, message: Any, records: list[Record], doing: str) -> None:
        error = message.error()
        at = message.topic(), message.partition()
        if error is None:
            if at in self._paused:
                # It is not taken, and the client is past it: it must be fetched again.
                self._to_assign = True
            elif at in self._next:
                record = record_of(self._names.to_logical[at[0]], at[1], message, self._again.record)
                records.append(record)
                self._next[at] = record.offset + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            if at in self._next:
                self._next[at] = max(self._next[at], message.offset())
        elif error.code() == KafkaError._BAD_MSG and self._past_damage:
            self._pass(at, message.offset(), records)
        elif (
            error.code() == KafkaError._AUTO_OFFSET_RESET
            and self._past_damage
            and message.offset() != self._next.get(at)
        ):
            # Behind a damaged batch librdkafka 2.16 goes on at an offset that it has read from the damage.
            self._to_assign = True
        elif not error.retriable() and error.code() not in PASSING:
            raise in_our_words(doing, error)

    def _pass(self, at: BrokerPartition, offset: int, records: list[Record]) -> None:
        """Give a `Lost` record in place of the damaged batch at an offset, and fetch from behind it."""
        if self._next.get(at, -1) <= offset and at not in self._paused:
            lost = self._cluster.damaged_at(at, offset)
            if lost is not None:
                records.append(lost)
                self._next[at] = lost.offset + 1
        self._to_assign = True

    def _assign(self) -> None:
        self._to_assign = False
        self._consumer.assign([PartitionOffset(*at, offset) for at, offset in self._next.items()])
        # librdkafka remembers what was paused beyond an assignment.
        self._consumer.resume(self._fetched(self._next.keys() - self._paused))
        self._consumer.pause(self._fetched(self._paused))

    def _fetched(self, wanted: set[BrokerPartition]) -> list[PartitionOffset]:
        # What waits to be assigned is paused when it is; the rest the client does not know.
        return [] if self._to_assign else [PartitionOffset(*each) for each in wanted & self._next.keys()]

    def _adopt(self) -> None:
        self._generation = self._count
        owned = [{p for name, p in self._assigned if name == wanted} for wanted in self._inputs]
        if max(owned[0] | owned[1], default=0) >= self._partitions:
            self._look_at_topics()
        check_together(*owned)
        self._owned = tuple(sorted(owned[0]))
        self._next.clear()
        self._paused.clear()
        self._to_assign = False

    def _at_broker(self, topic_partition: TopicPartition) -> BrokerPartition:
        topic, partition = topic_partition
        return self._names.to_broker[topic], partition

    def _look_at_topics(self) -> None:
        self._looked_s = time.monotonic()
        found = self._described()
        counts = {each.name: each.partitions for each in found}
        check_topics(counts, self._partitions, {each.name: each.id for each in found}, self._ids)

    def _described(self) -> list[TopicDescription]:
        return [each for each in self._admin.describe(INPUTS).values() if each is not None]
