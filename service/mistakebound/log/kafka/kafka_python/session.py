"""Membership of the group: which partitions are ours, and their records.

Guarantees:

1. All records of a `Polled` are of its generation. When the assignment changes, also when a partition
   leaves and comes back inside one poll, everything fetched is dropped, and each owned partition is
   held until `seek` says from where.
2. A transaction goes out with the membership under which its records were polled, never with a
   fresher one: the broker would accept that, and another owner's work would be done twice.
3. An input partition that is paused and resumed delivers again.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kafka import ConsumerRebalanceListener
from kafka import TopicPartition as BrokerPartition
from kafka.coordinator.base import MemberState
from kafka.errors import IllegalStateError

from mistakebound.core.records import INPUTS, Position, Record, TopicPartition, Transaction
from mistakebound.log.kafka.joining import Joining
from mistakebound.log.kafka.kafka_python.batches import deliver_records
from mistakebound.log.kafka.kafka_python.cluster import ENDS_MS, STUCK_S, Cluster
from mistakebound.log.kafka.kafka_python.errors import translated
from mistakebound.log.kafka.kafka_python.make_clients import broker_partition
from mistakebound.log.kafka.session_checks import check_together, check_topics, check_transaction
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Polled, Receipt, StaleGeneration, Unreachable

METADATA_BYTES = 4_096
SLICE_MS = 100
LEAVE_MS = 5_000
LOOK_UP_S = 30.0
JOIN_S = 3.0
AGAIN_MS = 5
LITTLE = 500
"""With fewer records than this, a poll also waits for a fetch that is on its way."""


class Assignments(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes each assignment. Runs on the client's own thread, inside a poll, where nothing may block."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.count = 0
        self.member: Any = None
        self.assigned: frozenset[BrokerPartition] = frozenset()

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Do nothing, also for partitions that are lost: the client delivers none of them until the next
        assignment, and the broker refuses a membership that was lost."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        # Offset 0 is a placeholder: without any, the client would look for a committed offset here.
        # Paused at once, nothing is delivered from it before `Session.seek`.
        for each in assigned:
            self._consumer.seek(each, 0)
            self._consumer.pause(each)
        self.assigned = frozenset(assigned)
        self.member = self._consumer.group_metadata()
        self.count += 1


class KafkaPythonSession:
    """One process's membership, with its transactional writer. Not thread-safe."""

    def __init__(self, cluster: Cluster, partitions: int, slot: str, writer: Writer) -> None:
        self._cluster = cluster
        self._names = cluster.names
        self._watchdog = cluster.watchdog
        self._partitions = partitions
        self._writer = writer
        self._outside = Joining(cluster.connection.longest_join_s)
        self._generation = 0
        self._owned: tuple[int, ...] = ()
        self._held: set[int] = set()
        self._paused: set[BrokerPartition] = set()
        self._worked = False
        """Since the last poll."""
        self._consumer = deliver_records(cluster.connection.member(slot), self._names.to_logical)
        self._assignments = Assignments(self._consumer)
        self._inputs = [self._names.to_broker[topic] for topic in INPUTS]
        self._consumer.subscribe(self._inputs, listener=self._assignments)
        self._rights = (
            f"Read on group {cluster.connection.group}",
            f"Read on topic {', '.join(self._inputs)}",
        )
        self._look_up_inputs()
        self._ids = {name: self._consumer._cluster.topic_id(name) for name in self._inputs}

    def poll(self, timeout_s: float) -> Polled:
        """Amid a rebalance it waits for the end of that, at most `JOIN_S`, however short `timeout_s` is."""
        began = time.monotonic()
        end = began + timeout_s
        fetched: dict[BrokerPartition, list[Record]] = {}
        limit_s = timeout_s + JOIN_S + STUCK_S
        with self._watchdog.limit(limit_s, "poll"), translated(self._reading, *self._rights):
            while not fetched and self._assignments.count == self._generation:
                self._unstick()
                if self._consumer._coordinator.rejoining:
                    # A join that is answered between two polls is thrown away by kafka-python 3.0.12, and begun
                    # again, for the whole group: so its end is waited for here.
                    end = max(end, began + JOIN_S)
                left_ms = max(0, round((end - time.monotonic()) * 1000))
                # In slices: by itself the client would sit out the whole time after a change of assignment.
                fetched = self._consumer.poll(timeout_ms=min(left_ms, SLICE_MS))
                if left_ms == 0:
                    break
            if self._worked and 0 < sum(map(len, fetched.values())) < LITTLE:
                # kafka-python asks for more as soon as it has delivered, and the broker answers with the first
                # record that comes. What came after it, during the work, is in the next answer, asked for just now.
                for each, batch in self._consumer.poll(timeout_ms=AGAIN_MS).items():
                    fetched.setdefault(each, []).extend(batch)
        self._worked = False
        joined = self._assignments.count != self._generation
        self._outside.look(self._consumer._coordinator.rejoin_needed and not joined)
        if joined:
            self._adopt()
            return Polled(self._generation, self._owned, ())
        self._check_topics()
        records = [record for batch in fetched.values() for record in batch]
        return Polled(self._generation, self._owned, records)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        self._writer.settle()
        return self._cluster.positions(sorted(partitions), self._consumer)

    def seek(self, partition: int, examples: int, labels: int) -> None:
        if partition not in self._owned:
            raise StaleGeneration(f"partition {partition} is not owned; poll again")
        for topic, offset in zip(INPUTS, (examples, labels), strict=True):
            each = broker_partition(self._names, topic, partition)
            if each in self._consumer.assignment():
                with _unless_lost():
                    self._consumer.seek(each, offset)
                    if each not in self._paused:
                        self._consumer.resume(each)
        self._held.discard(partition)

    def drained(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {each for each, left in self.undelivered(topic_partitions).items() if not left}

    def undelivered(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked = [each for each in topic_partitions if self._delivers(each)]
        if not asked:
            return {}
        ends = self._cluster.ends(asked, self._consumer, *self._rights)
        doing = "ask for the positions"
        with self._watchdog.limit(STUCK_S, doing), translated(doing, *self._rights):
            positions = {each: self._position(each) for each in ends}
        return {each: max(0, ends[each] - at) for each, at in positions.items() if at is not None}

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for each in topic_partitions:
            paused = broker_partition(self._names, *each)
            self._paused.add(paused)
            if each[1] in self._owned:
                with _unless_lost():
                    self._consumer.pause(paused)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for each in topic_partitions:
            resumed = broker_partition(self._names, *each)
            self._paused.discard(resumed)
            if self._delivers(each):
                with _unless_lost():
                    self._consumer.resume(resumed)

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        self._worked = True
        # As the client has heard it, adopted by a poll or not.
        check_transaction(transaction, generation, self._assignments.count, self._owned, METADATA_BYTES)
        member = self._assignments.member
        try:
            return Receipt(self._writer.write(transaction.outputs, transaction.positions, member))
        except StaleGeneration:
            # The client would hear of it only with a heartbeat, and until then deliver more of what is not ours. If
            # it is joining already, or has joined, asking again would make the whole group start over.
            if self._consumer._coordinator.state is MemberState.STABLE:
                self._consumer._coordinator.request_rejoin()
            raise

    def pass_damage(self) -> None:
        deliver_records(self._consumer, self._names.to_logical, past_damage=True)

    def close(self, timeout_s: float) -> None:
        with self._watchdog.limit(timeout_s + STUCK_S, "leave the group"):
            self._writer.drop()
            if self._consumer._coordinator.state is MemberState.REBALANCING:
                self._cluster.admin.remove(self._consumer._coordinator._generation.member_id)
            self._consumer.close(autocommit=False, timeout_ms=min(round(timeout_s * 1000), LEAVE_MS))

    def _adopt(self) -> None:
        self._generation = self._assignments.count
        owned = [{p for name, p in self._assignments.assigned if name == wanted} for wanted in self._inputs]
        self._check_topics()
        check_together(*owned)
        self._owned = tuple(sorted(owned[0]))
        self._held = set(self._owned)
        self._paused.clear()

    def _look_up_inputs(self) -> None:
        # A member that leads the group before it has heard of its topics assigns nothing, to everybody.
        cluster, end = self._consumer._cluster, time.monotonic() + LOOK_UP_S
        while any(cluster.partitions_for_topic(name) is None for name in self._inputs):
            if time.monotonic() > end:
                raise Unreachable(f"the broker said nothing of {', '.join(self._inputs)} in {LOOK_UP_S:g} s")
            cluster.request_update()
            time.sleep(0.01)

    def _check_topics(self) -> None:
        # What the client last heard: it asks again every `metadata_max_age_ms`, 30 s by default.
        cluster = self._consumer._cluster
        counts = {name: len(cluster.partitions_for_topic(name) or ()) for name in self._inputs}
        ids = {name: cluster.topic_id(name) for name in self._inputs}
        check_topics(counts, self._partitions, ids, self._ids)

    def _delivers(self, topic_partition: TopicPartition) -> bool:
        return topic_partition[1] in self._owned and topic_partition[1] not in self._held

    def _position(self, topic_partition: TopicPartition) -> int | None:
        found = None
        with _unless_lost():
            found = self._consumer.position(
                broker_partition(self._names, *topic_partition), timeout_ms=ENDS_MS
            )
        return None if found is None else int(found)

    def _reading(self) -> str:
        # Where the client stood when it failed; polled again, it may look for the next record forever.
        current = self._consumer._fetcher._next_partition_records
        where = f" at {current.topic_partition} from {current.next_fetch_offset}" if current else ""
        return f"read examples and labels{where}"

    def _unstick(self) -> None:
        # kafka-python 3.0.12 takes back what it set aside for a paused partition only while this slot is
        # None, and leaves an exhausted object there. It does not fetch a partition that is set aside, so that
        # one would never deliver again.
        fetcher = self._consumer._fetcher
        if not fetcher._next_partition_records:
            fetcher._next_partition_records = None


def _unless_lost() -> suppress:
    """Ignore errors for a partition that the client has just lost: the next `poll` will show it.

    A member that the group threw out, or that is joining again, has no partitions meanwhile, and the client's
    own thread may take them away at any time.
    """
    return suppress(IllegalStateError, KeyError, ValueError)
