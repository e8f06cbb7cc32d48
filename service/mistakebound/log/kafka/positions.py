"""The group's committed positions: one offset for each input, and the recovery point beside the first."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from mistakebound.core.records import INPUTS, Position
from mistakebound.log.kafka.connect import Names
from mistakebound.log.kafka.errors import translated
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Refused

COMMITTED_MS = 45_000  # above the transaction time-out and the broker's scan for timed-out transactions
STUCK_S = 90.0


def fetch_positions(
    consumer: Any, names: Names, partitions: Sequence[int], watchdog: Watchdog
) -> dict[int, Position | None]:
    """Committed positions, after every transaction that was open on them has ended.

    Raises Unreachable when one does not end in time.
    """
    doing = "read the committed positions (a transaction of their previous owner may still be open)"
    places = [names.at(topic, partition) for partition in partitions for topic in INPUTS]
    group = f"Describe on group {consumer.config['group_id']}"
    topics = f"Describe on topic {', '.join(names.to_broker[topic] for topic in INPUTS)}"
    with watchdog.limit(STUCK_S, doing), translated(doing, group, topics):
        found = consumer._coordinator.fetch_committed_offsets(places, timeout_ms=COMMITTED_MS)
    return positions_of(names, partitions, found)


def positions_of(
    names: Names, partitions: Sequence[int], found: Mapping[TopicPartition, Any]
) -> dict[int, Position | None]:
    """Committed offsets as positions. Refused where a partition has an offset for one input only."""
    positions: dict[int, Position | None] = {}
    for partition in partitions:
        both = [found.get(names.at("examples", partition)), found.get(names.at("labels", partition))]
        examples, labels = (each if each is not None and each.offset >= 0 else None for each in both)
        if examples is None and labels is None:
            positions[partition] = None
        elif examples is None or labels is None:
            missing = names.at("examples" if examples is None else "labels", partition)
            raise Refused(
                f"the group has no position for {missing.topic}-{partition} but one for its twin; "
                "if the offset was deleted, delete the other one too and start with --resume-from-outcomes; "
                "if the topic was made anew, take another log.prefix; if another program commits to this "
                "group, set `worker.group` to one of your own"
            )
        else:
            # confluent-kafka 2.16 sends the zero byte behind its C strings along.
            marks = (examples.metadata or "").removesuffix("\0")
            positions[partition] = Position(examples.offset, labels.offset, marks)
    return positions
