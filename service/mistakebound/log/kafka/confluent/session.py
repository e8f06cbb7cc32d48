"""Membership of the group by way of librdkafka. The guarantees are those of `mistakebound.log.kafka.session`.

The group's assignment and what the client fetches are two things: an assignment is answered with an empty
list, and only what `seek` has placed is handed to the client, at once by the next `poll`. So nothing is
ever delivered from a place that was not asked for.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from mistakebound.core.records import INPUTS, Position, Record, Topic, Transaction
from mistakebound.log.kafka.confluent.clients import Clients
from mistakebound.log.kafka.confluent.errors import PASSING, in_our_words, translated
from mistakebound.log.kafka.confluent.read import consume, record_of
from mistakebound.log.kafka.confluent.transact import Writer
from mistakebound.log.kafka.connect import Names
from mistakebound.log.kafka.session import STUCK_S, check_topics, must_fit, parted
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import LogError, Polled, Receipt, StaleGeneration

Side = tuple[Topic, int]
METADATA_BYTES = 4_095
"""One less than a broker takes: the client sends a zero byte along."""
LOOK_S = 30.0
SLICE_S = 0.1


class ConfluentSession:
    """One process's membership, with its transactional writer. Not thread-safe."""

    def __init__(
        self,
        clients: Clients,
        names: Names,
        partitions: int,
        slot: str,
        writer: Writer,
        watchdog: Watchdog,
        positions: Any,
        ends: Any,
        topics: Any,
        leave: Callable[[str], None],
    ) -> None:
        """`positions`, `ends` and `topics` ask the broker, as the log does for everybody; `leave` has it remove
        a member from the group, by another connection."""
        self._names = names
        self._partitions = partitions
        self._writer = writer
        self._watchdog = watchdog
        self._ask_positions, self._ask_ends, self._ask_topics = positions, ends, topics
        self._leave, self._joining = leave, True
        self._generation = self._count = 0
        self._member: Any = None
        self._assigned: frozenset[tuple[str, int]] = frozenset()
        self._owned: tuple[int, ...] = ()
        self._placed: dict[tuple[str, int], int] = {}
        """Next offset of each side that the client fetches, or is about to."""
        self._to_assign = False
        self._paused: set[tuple[str, int]] = set()
        self._failed: KafkaError | None = None
        self._looked_s = time.monotonic()
        self._ids = {name: each.id for name, each in topics().items()}
        self._inputs = [names.to_broker[topic] for topic in INPUTS]
        self._consumer: Any = clients.member(slot, self._note)
        """A Consumer, whose stubs promise more than it keeps: before its first join it has no member id."""
        self._consumer.subscribe(
            self._inputs, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    # --- what the group says, inside a poll -------------------------------------------------------

    def _on_assign(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.assign([])
        self._assigned = frozenset((each.topic, each.partition) for each in places)
        # The generation's own, kept: read later, it might be a fresher one, or that of no member at all,
        # and the broker would take both.
        self._member = consumer.consumer_group_metadata()
        self._joining = False
        self._count += 1

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        consumer.unassign()
        self._joining = True

    def _note(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _TURNED_AWAY:
            self._failed = error

    # --- the protocol -----------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> Polled:
        """Records of the owned partitions, waiting at most `timeout_s` for the first."""
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
        if self._count != self._generation:
            self._adopt()
            return Polled(self._generation, self._owned, ())
        self._check_topics()
        return Polled(self._generation, self._owned, records)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        """Committed positions, after every transaction that was open on them has ended."""
        self._writer.settle()
        found: dict[int, Position | None] = self._ask_positions(sorted(partitions))
        return found

    def seek(self, partition: int, examples: int, labels: int) -> None:
        """Read both inputs of an owned partition from these offsets on."""
        if partition not in self._owned:
            raise StaleGeneration(f"partition {partition} is not owned; poll again")
        for name, offset in zip(self._inputs, (examples, labels), strict=True):
            self._placed[name, partition] = offset
        self._to_assign = True

    def drained(self, sides: Iterable[Side]) -> set[Side]:
        """Those sides whose position has reached the last stable offset, as the broker says now."""
        known = {side: self._placed.get(self._place(side)) for side in sides}
        asked = [side for side, position in known.items() if position is not None]
        ends = self.ends(asked) if asked else {}
        return {side for side in asked if side in ends and (known[side] or 0) >= ends[side]}

    def ends(self, sides: Iterable[Side]) -> dict[Side, int]:
        """Last stable offset of each side, as the broker says now."""
        found: dict[Side, int] = self._ask_ends(sides)
        return found

    def pause(self, sides: Iterable[Side]) -> None:
        """Stop delivering these sides; their position stays."""
        places = {self._place(side) for side in sides}
        self._paused |= places
        self._consumer.pause(self._fetched(places))

    def resume(self, sides: Iterable[Side]) -> None:
        """Deliver these sides again."""
        places = {self._place(side) for side in sides}
        self._paused -= places
        self._consumer.resume(self._fetched(places))

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        """Write outputs and positions in one transaction of `generation`.

        Raises StaleGeneration, Fenced, TransactionFailed.
        """
        if generation != self._generation or generation != self._count:
            raise StaleGeneration(f"the transaction is of generation {generation}, now is {self._generation}")
        if transaction.outputs and not transaction.positions:
            raise ValueError("a transaction with outputs needs positions: they are what fences it")
        positions: dict[tuple[str, int], tuple[int, str]] = {}
        for partition, position in transaction.positions.items():
            if partition not in self._owned:
                raise StaleGeneration(f"partition {partition} is not owned in generation {generation}")
            must_fit(partition, position.metadata, METADATA_BYTES)
            examples, labels = self._inputs
            positions[examples, partition] = position.examples, position.metadata
            positions[labels, partition] = position.labels, ""
        return Receipt(self._writer.write(transaction.outputs, positions, self._member))

    def close(self, timeout_s: float) -> None:
        """Leave the group and release the writer."""
        with self._watchdog.limit(timeout_s + STUCK_S, "leave the group"):
            self._writer.drop()
            member = self._consumer.memberid() if self._joining else None
            self._consumer.close()
            self._joining = False
            if member:
                # While a join is not answered, the broker takes nothing else on that connection, a leave neither.
                # Removed before it was closed, the client would join once more.
                self._leave(member)

    # --- inside -----------------------------------------------------------------------------------

    def _take(self, message: Any, records: list[Record], doing: str) -> None:
        error = message.error()
        place = message.topic(), message.partition()
        if error is None:
            if place in self._placed and place not in self._paused:
                records.append(record_of(self._names, message))
                self._placed[place] = message.offset() + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            if place in self._placed:
                self._placed[place] = max(self._placed[place], message.offset())
        elif not error.retriable() and error.code() not in PASSING:
            raised: LogError = in_our_words(doing, error)
            raise raised

    def _assign(self) -> None:
        self._to_assign = False
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self._placed.items()])
        # librdkafka remembers what was paused beyond an assignment.
        self._consumer.resume(self._fetched(self._placed.keys() - self._paused))
        self._consumer.pause(self._fetched(self._paused))

    def _fetched(self, places: set[tuple[str, int]]) -> list[TopicPartition]:
        # What is placed and not yet assigned is paused when it is; the rest the client does not know.
        return [] if self._to_assign else [TopicPartition(*place) for place in places & self._placed.keys()]

    def _adopt(self) -> None:
        self._generation = self._count
        owned = [{p for name, p in self._assigned if name == wanted} for wanted in self._inputs]
        if max(owned[0] | owned[1], default=0) >= self._partitions:
            self._look_at_topics()
        if owned[0] != owned[1]:
            raise parted(*owned)
        self._owned = tuple(sorted(owned[0]))
        self._placed.clear()
        self._paused.clear()
        self._to_assign = False

    def _place(self, side: Side) -> tuple[str, int]:
        return self._names.to_broker[side[0]], side[1]

    def _check_topics(self) -> None:
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._look_at_topics()

    def _look_at_topics(self) -> None:
        self._looked_s = time.monotonic()
        found = self._ask_topics()
        counts = {name: each.partitions for name, each in found.items()}
        check_topics(counts, self._partitions, {name: each.id for name, each in found.items()}, self._ids)


_TURNED_AWAY = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
