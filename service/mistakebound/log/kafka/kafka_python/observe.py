"""The group's committed positions, and the ends of partitions: asked of the broker, never of a cache."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition as BrokerPartition

from mistakebound.core.records import INPUTS, Position, TopicPartition
from mistakebound.log.kafka.kafka_python.connect import Connection, broker_partition
from mistakebound.log.kafka.kafka_python.errors import translated
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Refused

COMMITTED_MS = 45_000  # above the transaction time-out and the broker's scan for timed-out transactions
ENDS_MS = 10_000
STUCK_S = 90.0


class Observer:
    """Sees the group and its inputs without joining it. Connects when it is first asked; not thread-safe."""

    def __init__(self, connection: Connection, names: Names, watchdog: Watchdog) -> None:
        self._connection = connection
        self._names = names
        self._watchdog = watchdog
        self._made: Any = None

    @property
    def consumer(self) -> Any:
        """One that knows the group's positions and never joins it."""
        if self._made is None:
            self._made = self._connection.observer()
        return self._made

    def positions(self, partitions: Sequence[int]) -> dict[int, Position | None]:
        """Committed positions, after every transaction that was open on them has ended."""
        return fetch_positions(self.consumer, self._names, partitions, self._watchdog)

    def ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offset of each, as the broker says now."""
        return fetch_ends(self.consumer, self._names, topic_partitions, self._watchdog)

    def watch(self, partitions: int) -> None:
        """Keep the leaders of all inputs known, so that `ends` need not look for them."""
        every = [broker_partition(self._names, topic, p) for topic in INPUTS for p in range(partitions)]
        self.consumer.assign(every)  # nothing is fetched without a poll
        for topic in INPUTS:
            self.consumer.partitions_for_topic(self._names.to_broker[topic])

    def close(self) -> None:
        if self._made is not None:
            self._made.close(autocommit=False)


def fetch_positions(
    consumer: Any, names: Names, partitions: Sequence[int], watchdog: Watchdog
) -> dict[int, Position | None]:
    """Committed positions, after every transaction that was open on them has ended.

    Raises Unreachable when one does not end in time.
    """
    doing = "read the committed positions (a transaction of their previous owner may still be open)"
    asked = [broker_partition(names, topic, partition) for partition in partitions for topic in INPUTS]
    group = f"Describe on group {consumer.config['group_id']}"
    topics = f"Describe on topic {', '.join(names.to_broker[topic] for topic in INPUTS)}"
    with watchdog.limit(STUCK_S, doing), translated(doing, group, topics):
        found = consumer._coordinator.fetch_committed_offsets(asked, timeout_ms=COMMITTED_MS)
    return _as_positions(names, partitions, found)


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


def fetch_ends(
    consumer: Any, names: Names, topic_partitions: Iterable[TopicPartition], watchdog: Watchdog, *rights: str
) -> dict[TopicPartition, int]:
    """Last stable offset of each, as the broker says now; one round trip for all."""
    asked = {broker_partition(names, *each): each for each in topic_partitions}
    doing = "ask for the last stable offsets"
    with watchdog.limit(STUCK_S, doing), translated(doing, *rights):
        try:
            found = consumer.end_offsets(list(asked), timeout_ms=ENDS_MS)
        except KeyError:  # a topic that the client has not looked up yet
            return {}
        return {each: int(found[broker]) for broker, each in asked.items()}
