"""Membership of the group: which partitions are ours, and their records.

Guarantees:

1. All records of a `Polled` are of its generation. When the assignment changes, also when a partition
   leaves and comes back inside one poll, everything fetched is dropped, and each owned partition is
   held until `seek` says from where.
2. A transaction goes out with the membership under which its records were polled, never with a
   fresher one: the broker would accept that, and another owner's work would be done twice.
3. A side that is paused and resumed delivers again.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka import ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.base import MemberState
from kafka.errors import IllegalStateError, KafkaError

from mistakebound.core.records import INPUTS, Position, Topic, Transaction
from mistakebound.log.kafka.batches import deliver_records
from mistakebound.log.kafka.connect import Connection, Names
from mistakebound.log.kafka.errors import translated
from mistakebound.log.kafka.positions import fetch_positions
from mistakebound.log.kafka.transact import Writer
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import (
    LogError,
    Polled,
    Receipt,
    Refused,
    StaleGeneration,
    TransactionFailed,
    Unreachable,
)

METADATA_BYTES = 4_096
ENDS_MS = 10_000
STUCK_S = 90.0
SLICE_MS = 100
LEAVE_MS = 5_000
LOOK_UP_S = 30.0
JOIN_S = 3.0
AGAIN_MS = 5
LITTLE = 500
"""Records that are no reason not to wait for a fetch that is on its way."""

Side = tuple[Topic, int]


class Assignments(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes each assignment. Runs on the client's own thread, inside a poll, where nothing may block."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.count = 0
        self.member: Any = None
        self.assigned: frozenset[TopicPartition] = frozenset()

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Nothing: until the next assignment the client delivers none of them."""

    def on_partitions_lost(self, lost: Any) -> None:
        """Nothing: the next assignment has another membership, and the broker refuses the old one."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        # The place is a placeholder: without one the client would look for a committed offset here.
        # Paused at once, nothing is delivered from it before `Session.seek`.
        for place in assigned:
            self._consumer.seek(place, 0)
            self._consumer.pause(place)
        self.assigned = frozenset(assigned)
        self.member = self._consumer.group_metadata()
        self.count += 1


class KafkaSession:
    """One process's membership, with its transactional writer. Not thread-safe."""

    def __init__(
        self,
        connection: Connection,
        names: Names,
        partitions: int,
        slot: str,
        writer: Writer,
        watchdog: Watchdog,
    ) -> None:
        self._connection = connection
        self._names = names
        self._partitions = partitions
        self._writer = writer
        self._watchdog = watchdog
        self._generation = 0
        self._owned: tuple[int, ...] = ()
        self._held: set[int] = set()
        self._paused: set[TopicPartition] = set()
        self._worked = False
        """Since the last poll."""
        self._consumer = deliver_records(connection.member(slot), names.to_logical)
        self._assignments = Assignments(self._consumer)
        self._inputs = [names.to_broker[topic] for topic in INPUTS]
        self._consumer.subscribe(self._inputs, listener=self._assignments)
        self._rights = (
            f"Read on group {connection.group}",
            f"Read on topic {', '.join(self._inputs)}",
        )
        self._look_up_inputs()
        self._ids = {name: self._consumer._cluster.topic_id(name) for name in self._inputs}

    def poll(self, timeout_s: float) -> Polled:
        """Records of the owned partitions, waiting at most `timeout_s` for the first; amid a rebalance for its
        end, at most `JOIN_S`."""
        began = time.monotonic()
        end = began + timeout_s
        fetched: dict[TopicPartition, list[Any]] = {}
        with (
            self._watchdog.limit(timeout_s + JOIN_S + STUCK_S, "poll"),
            translated(self._reading, *self._rights),
        ):
            while not fetched and self._assignments.count == self._generation:
                self._unstick()
                if self._consumer._coordinator.rejoining:
                    # A join that is answered between two polls is thrown away by kafka-python 3.0.12, and begun
                    # anew, for the whole group: so its end is waited for here.
                    end = max(end, began + JOIN_S)
                left_ms = max(0, round((end - time.monotonic()) * 1000))
                # In slices: by itself the client would sit out the whole time after a change of assignment.
                fetched = self._consumer.poll(timeout_ms=min(left_ms, SLICE_MS))
                if left_ms == 0:
                    break
            if self._worked and 0 < sum(map(len, fetched.values())) < LITTLE:
                # kafka-python asks for more as soon as it has delivered, and the broker answers with the first
                # record that comes. What came behind it during the work is in the next answer, asked for just now.
                for place, batch in self._consumer.poll(timeout_ms=AGAIN_MS).items():
                    fetched.setdefault(place, []).extend(batch)
        self._worked = False
        if self._assignments.count != self._generation:
            self._adopt()
            return Polled(self._generation, self._owned, ())
        self._check_topics()
        records = [record for batch in fetched.values() for record in batch]
        return Polled(self._generation, self._owned, records)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        """Committed positions, after every transaction that was open on them has ended."""
        self._writer.settle()
        return fetch_positions(self._consumer, self._names, sorted(partitions), self._watchdog)

    def seek(self, partition: int, examples: int, labels: int) -> None:
        """Read both inputs of an owned partition from these offsets on."""
        if partition not in self._owned:
            raise StaleGeneration(f"partition {partition} is not owned; poll again")
        for topic, offset in zip(INPUTS, (examples, labels), strict=True):
            place = self._names.at(topic, partition)
            if place in self._consumer.assignment():
                with _unless_lost():
                    self._consumer.seek(place, offset)
                    if place not in self._paused:
                        self._consumer.resume(place)
        self._held.discard(partition)

    def drained(self, sides: Iterable[Side]) -> set[Side]:
        """Those sides whose position has reached the last stable offset, as the broker says now."""
        places = {self._names.at(*side): side for side in sides if self._delivers(side)}
        if not places:
            return set()
        ends = self.ends(places.values())
        with (
            self._watchdog.limit(STUCK_S, "ask for the positions"),
            translated("ask for the positions", *self._rights),
        ):
            return {
                side for place, side in places.items() if side in ends and self._position(place) >= ends[side]
            }

    def ends(self, sides: Iterable[Side]) -> dict[Side, int]:
        """Last stable offset of each side, as the broker says now."""
        return ask_for_ends(self._consumer, self._names, sides, self._watchdog, *self._rights)

    def pause(self, sides: Iterable[Side]) -> None:
        """Stop delivering these sides; their position stays."""
        for side in sides:
            place = self._names.at(*side)
            self._paused.add(place)
            if side[1] in self._owned:
                with _unless_lost():
                    self._consumer.pause(place)

    def resume(self, sides: Iterable[Side]) -> None:
        """Deliver these sides again."""
        for side in sides:
            place = self._names.at(*side)
            self._paused.discard(place)
            if self._delivers(side):
                with _unless_lost():
                    self._consumer.resume(place)

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        """Write outputs and positions in one transaction of `generation`.

        Raises StaleGeneration, Fenced, TransactionFailed.
        """
        self._worked = True
        if generation != self._generation or generation != self._assignments.count:
            raise StaleGeneration(f"the transaction is of generation {generation}, now is {self._generation}")
        if transaction.outputs and not transaction.positions:
            raise ValueError("a transaction with outputs needs positions: they are what fences it")
        positions: dict[TopicPartition, Any] = {}
        for partition, position in transaction.positions.items():
            if partition not in self._owned:
                raise StaleGeneration(f"partition {partition} is not owned in generation {generation}")
            must_fit(partition, position.metadata)
            offsets = (position.examples, position.metadata), (position.labels, "")
            for topic, (offset, metadata) in zip(INPUTS, offsets, strict=True):
                positions[self._names.at(topic, partition)] = OffsetAndMetadata(offset, metadata, -1)
        try:
            return Receipt(self._writer.write(transaction.outputs, positions, self._assignments.member))
        except StaleGeneration:
            # The client would only hear of it with a heartbeat, and deliver more of what is not ours. If it joins
            # already, or has joined, asking again would make the whole group begin anew.
            if self._consumer._coordinator.state is MemberState.STABLE:
                self._consumer._coordinator.request_rejoin()
            raise

    def close(self, timeout_s: float) -> None:
        """Leave the group and release the writer."""
        with self._watchdog.limit(timeout_s + STUCK_S, "leave the group"):
            self._writer.drop()
            if self._consumer._coordinator.state is MemberState.REBALANCING:
                self._leave_beside()
            self._consumer.close(autocommit=False, timeout_ms=min(round(timeout_s * 1000), LEAVE_MS))

    def _leave_beside(self) -> None:
        # While a join is not answered, the broker takes nothing else on that connection, a leave neither:
        # the group would wait for this member, and then give it partitions until its session ends.
        member = MemberToRemove(self._consumer._coordinator._generation.member_id)
        try:
            admin = self._connection.admin(request_timeout_ms=LEAVE_MS, bootstrap_timeout_ms=LEAVE_MS)
        except LogError:
            return
        try:
            admin.remove_group_members(self._connection.group, [member])
        except KafkaError:
            return
        finally:
            admin.close()

    def _adopt(self) -> None:
        self._generation = self._assignments.count
        owned: dict[str, set[int]] = {name: set() for name in self._inputs}
        for place in self._assignments.assigned:
            owned[place.topic].add(place.partition)
        examples, labels = (owned[name] for name in self._inputs)
        self._check_topics()
        if examples != labels:
            raise parted(examples, labels)
        self._owned = tuple(sorted(examples))
        self._held = set(self._owned)
        self._paused.clear()

    def _look_up_inputs(self) -> None:
        # A member that leads the group before it has heard of its topics assigns nothing, to everybody.
        cluster, end = self._consumer._cluster, time.monotonic() + LOOK_UP_S
        while any(cluster.partitions_for_topic(name) is None for name in self._inputs):
            if time.monotonic() > end:
                raise Unreachable(f"the broker tells nothing of {', '.join(self._inputs)} in {LOOK_UP_S:g} s")
            cluster.request_update()
            time.sleep(0.01)

    def _check_topics(self) -> None:
        # What the client last heard: it asks again every `metadata_max_age_ms`, 30 s by default.
        cluster = self._consumer._cluster
        counts = {name: len(cluster.partitions_for_topic(name) or ()) for name in self._inputs}
        ids = {name: cluster.topic_id(name) for name in self._inputs}
        check_topics(counts, self._partitions, ids, self._ids)

    def _delivers(self, side: Side) -> bool:
        return side[1] in self._owned and side[1] not in self._held

    def _position(self, place: TopicPartition) -> int:
        found = None
        with _unless_lost():
            found = self._consumer.position(place, timeout_ms=ENDS_MS)
        return -1 if found is None else int(found)

    def _reading(self) -> str:
        # Where the client stands when it fails; asked again, it may look for the next record for ever.
        current = self._consumer._fetcher._next_partition_records
        where = f" at {current.topic_partition} from {current.next_fetch_offset}" if current else ""
        return f"read examples and labels{where}"

    def _unstick(self) -> None:
        # kafka-python 3.0.12 takes back what it set aside for a paused partition only while this slot is
        # None, and leaves an exhausted object there; a set-aside partition is not fetched, so it would
        # never deliver again.
        fetcher = self._consumer._fetcher
        if not fetcher._next_partition_records:
            fetcher._next_partition_records = None


def ask_for_ends(
    consumer: Any, names: Names, sides: Iterable[Side], watchdog: Watchdog, *rights: str
) -> dict[Side, int]:
    """Last stable offset of each side, as the broker says now; one round trip for all."""
    places = {names.at(*side): side for side in sides}
    doing = "ask for the last stable offsets"
    with watchdog.limit(STUCK_S, doing), translated(doing, *rights):
        try:
            found = consumer.end_offsets(list(places), timeout_ms=ENDS_MS)
        except KeyError:  # a topic that the client has not looked up yet
            return {}
        return {side: int(found[place]) for place, side in places.items()}


def must_fit(partition: int, metadata: str, most_bytes: int = METADATA_BYTES) -> None:
    """Raise TransactionFailed for metadata that the broker would refuse, which leaves a client of no use."""
    size = len(metadata.encode())
    if size > most_bytes:
        raise TransactionFailed(
            f"metadata of partition {partition} takes {size} bytes, a broker takes {most_bytes}; "
            "nothing was sent"
        )


def parted(examples: Iterable[int], labels: Iterable[int]) -> Refused:
    """The group's leader did not give both inputs of a partition to one member."""
    return Refused(
        f"the group gave examples {sorted(examples)} and labels {sorted(labels)}: partitions "
        "must stay together; no other program may be in this group (`worker.group`)"
    )


def check_topics(
    counts: Mapping[str, int], partitions: int, ids: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Refused where a topic got more partitions while the worker ran, or is not the one that it joined."""
    if any(count not in (0, partitions) for count in counts.values()):
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise Refused(
            f"the partition counts changed: {listed}, at start {partitions}; a count is fixed for "
            "the life of a prefix, take another prefix and replay"
        )
    anew = [name for name, count in counts.items() if count and ids[name] != known[name]]
    if anew:
        raise Refused(
            f"{', '.join(anew)} was made anew while this worker read it: its offsets are of other records "
            "now; take another log.prefix"
        )


def _unless_lost() -> suppress:
    """Nothing happens for a partition that the client has just lost: the next `poll` tells.

    A member that the group threw out, or that joins again, has no partitions meanwhile; the client's
    own thread takes them away at any time.
    """
    return suppress(IllegalStateError, KeyError, ValueError)
