"""What the log asks of a cluster beside reads, transactions and membership, whichever client does those.

Committed positions and the ends of partitions are asked of the broker, never of a cache.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition as BrokerPartition

from mistakebound.core.records import INPUTS, Lost, Position, TopicPartition
from mistakebound.log.kafka.kafka_python.admin import Admin
from mistakebound.log.kafka.kafka_python.batches import deliver_records
from mistakebound.log.kafka.kafka_python.errors import translated
from mistakebound.log.kafka.kafka_python.make_clients import Connection, broker_partition
from mistakebound.log.kafka.names import BrokerPartition as BrokerPartitionName
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Refused, Unreachable
from mistakebound.settings import Settings

COMMITTED_MS = 45_000  # above the transaction time-out and the broker's scan for timed-out transactions
ENDS_MS = 10_000
DAMAGE_S = 30.0
STUCK_S = 90.0


class Cluster:
    """One cluster and one group on it, seen from outside the group. Not thread-safe."""

    def __init__(self, settings: Settings, bark: Callable[[str], None]) -> None:
        """Connect. Raises Unreachable for a silent address, Refused and Misconfigured for wrong settings."""
        self.names = Names.of(settings)
        self.connection = Connection(settings)
        self.watchdog = Watchdog(bark)
        self.admin = Admin(self.connection, self.names, self.watchdog)
        self._observer: Any = None

    @property
    def observer(self) -> Any:
        """A consumer that knows the group's positions and never joins it; made when first asked for."""
        if self._observer is None:
            self._observer = self.connection.observer()
        return self._observer

    def positions(self, partitions: Sequence[int], consumer: Any = None) -> dict[int, Position | None]:
        """Committed positions, after every transaction that was open on them has ended.

        Raises Unreachable when one does not end in time. `consumer` is the one to ask, by default the observer.
        """
        doing = "read the committed positions (a transaction of their previous owner may still be open)"
        asked = [broker_partition(self.names, topic, p) for p in partitions for topic in INPUTS]
        topics = ", ".join(self.names.to_broker[topic] for topic in INPUTS)
        rights = f"Describe on group {self.connection.group}", f"Describe on topic {topics}"
        coordinator = (consumer or self.observer)._coordinator
        with self.watchdog.limit(STUCK_S, doing), translated(doing, *rights):
            found = coordinator.fetch_committed_offsets(asked, timeout_ms=COMMITTED_MS)
        return _as_positions(self.names, partitions, found)

    def ends(
        self, topic_partitions: Iterable[TopicPartition], consumer: Any = None, *rights: str
    ) -> dict[TopicPartition, int]:
        """Last stable offset of each, as the broker says now; one round trip for all."""
        asked = {broker_partition(self.names, *each): each for each in topic_partitions}
        doing = "ask for the last stable offsets"
        asking = consumer or self.observer
        with self.watchdog.limit(STUCK_S, doing), translated(doing, *rights):
            try:
                found = asking.end_offsets(list(asked), timeout_ms=ENDS_MS)
            except KeyError:  # a topic that the client has not looked up yet
                return {}
            return {each: int(found[broker]) for broker, each in asked.items()}

    def damaged_at(self, at: BrokerPartitionName, offset: int) -> Lost | None:
        """The batch at an offset that another client found damaged; None where it reads well after all."""
        doing = f"look at the damaged batch of {at[0]}-{at[1]} at offset {offset}"
        consumer = deliver_records(self.connection.reader(), self.names.to_logical, past_damage=True)
        wanted, end_s = BrokerPartition(*at), time.monotonic() + DAMAGE_S
        try:
            with self.watchdog.limit(STUCK_S, doing), translated(doing):
                consumer.assign([wanted])
                consumer.seek(wanted, offset)
                while not (found := consumer.poll(timeout_ms=100, max_records=1).get(wanted)):
                    if time.monotonic() > end_s:
                        raise Unreachable(f"{doing}: the broker did not give it within {DAMAGE_S:g} s")
        finally:
            consumer.close(autocommit=False)
        return found[0] if isinstance(found[0], Lost) else None

    def stable_ends(self, topic_partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """As `ends`, for any topics, whether watched or not. Raises Unreachable where the broker does not know them."""
        deadline = time.monotonic() + ENDS_MS / 1000
        while len(found := self.ends(topic_partitions)) < len(topic_partitions):
            if time.monotonic() > deadline:
                names = ", ".join(sorted({self.names.to_broker[topic] for topic, _ in topic_partitions}))
                raise Unreachable(f"the broker did not say in time where {names} end")
            for topic in {topic for topic, _ in topic_partitions}:
                self.observer.partitions_for_topic(self.names.to_broker[topic])
        return found

    def watch(self, partitions: int) -> None:
        """Keep the leaders of all inputs known, so that `ends` need not look for them."""
        every = [broker_partition(self.names, topic, p) for topic in INPUTS for p in range(partitions)]
        self.observer.assign(every)  # nothing is fetched without a poll
        for topic in INPUTS:
            self.observer.partitions_for_topic(self.names.to_broker[topic])

    def close(self) -> None:
        """Release connections, and stop watching."""
        if self._observer is not None:
            self._observer.close(autocommit=False)
        self.admin.close()
        self.watchdog.close()


def _as_positions(
    names: Names, partitions: Sequence[int], found: Mapping[BrokerPartition, Any]
) -> dict[int, Position | None]:
    """Committed offsets as positions. Refused where a partition has an offset for one input only."""
    positions: dict[int, Position | None] = {}
    for partition in partitions:
        both = [found.get(broker_partition(names, topic, partition)) for topic in INPUTS]
        examples, labels = (each if each is not None and each.offset >= 0 else None for each in both)
        if examples is None and labels is None:
            positions[partition] = None
        elif examples is None or labels is None:
            missing = names.to_broker["examples" if examples is None else "labels"]
            raise Refused(
                f"the group has no position for {missing}-{partition} but one for its twin; "
                "if the offset was deleted, delete the other one too and start with --resume-from-outcomes; "
                "if the topic was made anew, take another log.prefix; if another program commits to this "
                "group, set `worker.group` to one of your own"
            )
        else:
            # confluent-kafka 2.16 sends the zero byte that ends its C strings along.
            metadata = (examples.metadata or "").removesuffix("\0")
            positions[partition] = Position(examples.offset, labels.offset, metadata)
    return positions
