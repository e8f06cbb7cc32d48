"""Topics, watermarks and the group, seen from outside the group."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import kafka.errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove
from kafka.protocol.consumer import OffsetSpec
from kafka.protocol.metadata import CoordinatorType

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import read_recovery_point
from mistakebound.core.records import INPUTS, TOPICS, Position, Topic
from mistakebound.log.kafka.kafka_python.auth_errors import refusal
from mistakebound.log.kafka.kafka_python.errors import denied, translated
from mistakebound.log.kafka.kafka_python.make_clients import Connection, broker_partition
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import LogError, Refused, TopicDescription, Unreachable, equal_partitions

CALL_S = 60.0
CONNECT_S = 15.0
LEAVE_MS = 5_000
SETTLED_S = 30.0
ALWAYS: Mapping[str, str] = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}
FOREVER: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1"}


def _is_recovery_point(metadata: str | None) -> bool:
    try:
        read_recovery_point(Position(0, 0, (metadata or "").removesuffix("\0")))
    except BadLog:
        return False
    return True


class Admin:
    """Everything that needs neither the group nor a transaction. Not thread-safe."""

    def __init__(self, connection: Connection, names: Names, watchdog: Watchdog) -> None:
        self._connection = connection
        self._names = names
        self._watchdog = watchdog
        self._client = connection.admin()

    def partitions(self) -> int:
        """The one count of all six topics; Refused where one is missing or differs."""
        found = self._topics()
        counts = {
            self._names.to_broker[topic]: len(found[topic]["partitions"]) if topic in found else None
            for topic in TOPICS
        }
        return equal_partitions(counts, f"at {','.join(self._connection.servers)}")

    def describe(self, wanted: Sequence[Topic] = TOPICS) -> dict[Topic, TopicDescription | None]:
        """Each logical topic as it is now; None where it is missing."""
        topics = self._topics(wanted)
        resources = [ConfigResource(ConfigResourceType.TOPIC, each["name"]) for each in topics.values()]
        configs: Mapping[str, Any] = {}
        if resources:
            ask = partial(self._client.describe_configs, resources, config_filter="all")
            configs = self._ask("describe the topics' settings", ask)["topic"]
        return {topic: self._description(topics.get(topic), configs) for topic in wanted}

    def partition_count(self, topic: Topic) -> int:
        """Of this topic; needs no right on another one."""
        found = self._topics([topic]).get(topic)
        if found is None:
            raise Refused(
                f"topic {self._names.to_broker[topic]} is missing; make it with `mistakebound topics create`"
            )
        return len(found["partitions"])

    def other_readers(self) -> dict[str, frozenset[Topic]]:
        """Groups whose committed offsets on our inputs are a worker's: some of them carry a recovery point.

        Groups that this user may not see are left out.
        """
        listed = self._ask("list the consumer groups", self._client.list_groups)
        groups = sorted({each["group_id"] for each in listed} - {self._connection.group})
        found: dict[str, frozenset[Topic]] = {}
        for group, offsets in self._offsets_of(groups).items():
            held = {at.topic: each.metadata for at, each in offsets.items() if each.offset >= 0}
            inputs = frozenset(topic for topic in INPUTS if self._names.to_broker[topic] in held)
            if inputs and any(_is_recovery_point(metadata) for metadata in held.values()):
                found[group] = inputs
        return found

    def _offsets_of(self, groups: Sequence[str]) -> Mapping[str, Mapping[Any, Any]]:
        """What these groups have committed; of one that is not for us to see, or is of another type, nothing."""
        if not groups:
            return {}
        ask = partial(self._client.list_group_offsets, list(groups))
        try:
            found: Mapping[str, Mapping[Any, Any]] = self._ask("ask for the groups' committed offsets", ask)
        except Unreachable:
            raise
        except LogError:
            if len(groups) == 1:
                return {}
            return {group: offsets for one in groups for group, offsets in self._offsets_of([one]).items()}
        return found

    def create_topics(self, partitions: int, config: Mapping[Topic, Mapping[str, str]]) -> list[str]:
        """Create what is missing, with record times as written and `updates` kept forever."""
        there = self._topics()
        wanted = {
            self._names.to_broker[topic]: {
                "num_partitions": partitions,
                "configs": {**ALWAYS, **(FOREVER if topic == "updates" else {}), **config.get(topic, {})},
            }
            for topic in TOPICS
            if topic not in there
        }
        if wanted:
            ask = partial(self._client.create_topics, wanted, wait_for_metadata=True)
            names = ", ".join(wanted)
            self._ask(f"create the topics {names}", ask, f"Create on topic {names}", "Create on cluster")
        return list(wanted)

    def low_watermark(self, topic: Topic, partition: int) -> int:
        """Offset of the oldest record still kept."""
        return self._offset(topic, partition, OffsetSpec.EARLIEST)

    def high_watermark(self, topic: Topic, partition: int) -> int:
        """Offset after the newest record, committed or not."""
        return self._offset(topic, partition, OffsetSpec.LATEST)

    def offered(self) -> frozenset[int]:
        """The keys of the protocol's requests that the broker knows."""
        return frozenset(self._client._manager.broker_version_data.api_versions)

    def find_coordinator(self, transactional_id: str) -> None:
        """Ask who coordinates the transactions of an id; wait while that is being settled, as for a cluster's first one.

        Raises LogError where nobody does; Refused where this user may not ask.
        """
        doing, end = f"ask who coordinates {transactional_id}", time.monotonic() + SETTLED_S
        find = partial(self._client._find_coordinator_id, transactional_id, CoordinatorType.TRANSACTION)
        while True:
            try:
                self._ask(
                    doing,
                    partial(self._client._manager.run, find),
                    f"Write on transactional id {transactional_id}",
                )
                return
            except Unreachable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def evict(self, client_id: str) -> None:
        """Remove a dead predecessor from the group at once, instead of after its session times out.

        Where that fails, the time-out does it.
        """
        group = self._connection.group
        with suppress(kafka_errors.KafkaError, KeyError):
            members = self._client.describe_groups([group])[group]["members"]
            dead = [MemberToRemove(each["member_id"]) for each in members if each["client_id"] == client_id]
            if dead:
                self._client.remove_group_members(group, dead)

    def remove(self, member: str) -> None:
        """Remove a member that cannot leave the group itself. Where that fails, its session times out.

        While a join is not answered, the broker takes nothing else on the member's connection, not even a leave:
        the group would wait for it, and then give it partitions until its session ends.
        """
        with suppress(kafka_errors.KafkaError, LogError):
            # Of its own: a process that ends waits less long for a broker than one that works.
            limits = {"request_timeout_ms": LEAVE_MS, "bootstrap_timeout_ms": LEAVE_MS}
            with closing(self._connection.admin(**limits)) as client:
                client.remove_group_members(self._connection.group, [MemberToRemove(member)])

    def max_message_bytes(self, topic: Topic) -> int:
        """The topic's `max.message.bytes`."""
        described = self.describe([topic])[topic]
        if described is None:
            raise Refused(
                f"topic {self._names.to_broker[topic]} is missing; make it with `mistakebound topics create`"
            )
        return int(described.config["max.message.bytes"])

    def close(self) -> None:
        self._client.close()

    def _ask(self, doing: str, call: Callable[[], Any], *rights: str) -> Any:
        # Unlike the others, this client gives up at once while it is not connected, or while it knows a leader
        # by its number alone: it asks who leads each time, and where brokers are twice a minute, unless it is told to.
        end = time.monotonic() + CONNECT_S
        with self._watchdog.limit(CALL_S, doing), translated(doing, *rights):
            while True:
                try:
                    return call()
                except (
                    kafka_errors.NodeNotReadyError,
                    kafka_errors.KafkaConnectionError,
                    kafka_errors.UnknownBrokerIdError,
                ) as error:
                    if time.monotonic() > end or refusal(error) is not None:
                        raise
                    if isinstance(error, kafka_errors.UnknownBrokerIdError):
                        self._client._manager.cluster.request_update()
                    time.sleep(0.1)

    def _topics(self, wanted: Sequence[Topic] = TOPICS) -> dict[Topic, Any]:
        names = [self._names.to_broker[topic] for topic in wanted]
        found = self._ask("look up the topics", partial(self._client.describe_topics, names))
        # The broker does not tell those who may not see a topic whether it exists.
        hidden = kafka_errors.TopicAuthorizationFailedError.errno
        unseen = [each["name"] for each in found if each["error_code"] == hidden]
        if unseen:
            right = f"Describe on topic {', '.join(unseen)} (Read and Write include it)"
            raise denied("look up the topics", right)
        return {self._names.to_logical[each["name"]]: each for each in found if each["partitions"]}

    def _description(self, found: Any, configs: Mapping[str, Any]) -> TopicDescription | None:
        if found is None:
            return None
        name = found["name"]
        config = {key: str(entry["value"]) for key, entry in configs.get(name, {}).items()}
        if not config:  # the client drops the broker's answer that we may not ask
            raise denied("describe the topics' settings", f"DescribeConfigs on topic {name}")
        return TopicDescription(name, str(found.get("topic_id", "")), len(found["partitions"]), config)

    def _offset(self, topic: Topic, partition: int, spec: Any) -> int:
        asked = broker_partition(self._names, topic, partition)
        ask = partial(self._client.list_partition_offsets, {asked: spec}, timeout_ms=10_000)
        doing = f"ask for the ends of {asked.topic}-{partition}"
        answer = self._ask(doing, ask, f"Describe on topic {asked.topic}")
        return int(answer[asked].offset)
