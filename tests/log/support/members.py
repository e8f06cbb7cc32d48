"""The members that the two Kafka libraries give a session, without a broker: what a test wants to happen, happens.

`Group` is what brokers and group know; `FakeKafkaConsumer` and `FakeLibrdkafka` stand for `kafka.KafkaConsumer` and
`confluent_kafka.Consumer` above it, as far as the sessions use them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset
from kafka import TopicPartition as BrokerPartition
from kafka.coordinator.base import MemberState

from mistakebound.core.records import INPUTS, Outgoing, Position, Record, TopicPartition
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.ports import Ends, given_up, moved_on
from mistakebound.log.protocol import LogError, TopicDescription
from mistakebound.settings import Settings
from tests.log.support.watched import Watched

At = tuple[str, int]
NAMES = Names.of(Settings())


class Group:
    """Records of the inputs, the group's positions, and what is told of them."""

    def __init__(self, partitions: int = 2) -> None:
        self.partitions = partitions
        self.topic_ids = {NAMES.to_broker[topic]: f"id of {topic}" for topic in INPUTS}
        self.records: dict[At, list[Record]] = defaultdict(list)
        self.markers: dict[At, int] = defaultdict(int)
        """Transaction markers behind the last record."""
        self.committed: dict[int, Position] = {}
        self.pending: dict[int, Position] = {}
        """Positions of a transaction that its client has left undecided; the next holder of the id has it committed."""
        self.refuses = False
        """Whether the membership of every transaction is an old one."""
        self.memberships: list[Any] = []
        """With which each transaction was committed."""
        self.removed: list[str] = []
        self.metadata_asked = 0
        self.watchdog = Watched()
        self.member: Any = None
        """What kafka-python makes for the next session."""

    def put(self, topic: Any, partition: int, *values: bytes) -> None:
        at = NAMES.to_broker[topic], partition
        for value in values:
            offset = self.end(at)
            self.records[at].append(Record(topic, partition, offset, 5, None, value))

    def end(self, at: At) -> int:
        """Its last stable offset."""
        return len(self.records[at]) + self.markers[at]

    # --- what sessions ask of `Cluster` ----------------------------------------------------------

    @property
    def names(self) -> Names:
        return NAMES

    @property
    def connection(self) -> Any:
        return SimpleNamespace(member=lambda slot: self.member, group="g", longest_join_s=300.0)

    @property
    def admin(self) -> Any:
        return self

    def describe(self, wanted: Sequence[Any]) -> dict[Any, TopicDescription]:
        self.metadata_asked += 1
        names = {topic: NAMES.to_broker[topic] for topic in wanted}
        return {
            topic: TopicDescription(name, self.topic_ids[name], self.partitions, {})
            for topic, name in names.items()
        }

    def watch(self, partitions: int) -> None: ...

    def remove(self, member: str) -> None:
        self.removed.append(member)

    def positions(self, partitions: Sequence[int], consumer: Any = None) -> dict[int, Position | None]:
        return {p: self.committed.get(p) for p in partitions}

    def ends(self, asked: Iterable[TopicPartition], *_: Any) -> dict[TopicPartition, int]:
        return {each: self.end((NAMES.to_broker[each[0]], each[1])) for each in asked}


class FakeSender:
    """`mistakebound.log.kafka.ports.Sender` of a group."""

    errors: ClassVar[tuple[type[Exception], ...]] = (ConnectionError, PermissionError)

    def __init__(self, group: Group) -> None:
        self._group = group
        self._positions: Mapping[int, Position] = {}

    def initialise(self) -> None:
        self._group.committed |= self._group.pending
        self._group.pending = {}

    def begin(self) -> None: ...

    def send(
        self, topic_partition: TopicPartition, records: Sequence[Outgoing], timeout_s: float
    ) -> None: ...

    def flush(self, timeout_s: float) -> Ends:
        return {}

    def send_positions(self, positions: Mapping[int, Position], member: Any, timeout_s: float) -> None:
        if self._group.refuses:
            raise PermissionError("an old generation")
        self._group.memberships.append(member)
        self._positions = positions

    def commit(self, timeout_s: float) -> None:
        self._group.committed |= self._positions

    def abort(self, timeout_s: float) -> None: ...

    def sent_again(self) -> bool:
        return False

    def explain(self, error: Exception) -> LogError:
        return moved_on() if isinstance(error, PermissionError) else given_up("an id", repr(error))

    def discard(self) -> None: ...


class _Member:
    """What both members have in common: where they read, and what a test may do to them."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.membership = "before the first join"
        self.places: dict[At, int] = {}
        self.paused: set[At] = set()
        self.leaks = False
        """Whether records of a paused partition are delivered. They come again once it is resumed."""
        self.assignment_due: list[At] | None = None
        self.closed = False

    def give(self, *partitions: int, labels: Sequence[int] | None = None) -> None:
        """The group assigns these, as the next poll will tell; both inputs of each, if not said otherwise."""
        examples, of_labels = (NAMES.to_broker[topic] for topic in INPUTS)
        self.assignment_due = [(examples, p) for p in partitions]
        self.assignment_due += [(of_labels, p) for p in (partitions if labels is None else labels)]
        self.membership = f"of {sorted(self.assignment_due)}"

    def take(self) -> Iterator[tuple[At, Record]]:
        """What is there of the partitions that are fetched."""
        for at, place in list(self.places.items()):
            paused = at in self.paused
            if paused and not self.leaks:
                continue
            for record in self.group.records[at][place:]:
                yield at, record
            if not paused:
                self.places[at] = max(place, len(self.group.records[at]))


class FakeLibrdkafka(_Member):
    """`confluent_kafka.Consumer`."""

    def __init__(self, group: Group, errors: Callable[[KafkaError], None]) -> None:
        super().__init__(group)
        self.errors = errors
        self.errors_due: list[Message] = []
        self.asked: list[str] = []
        """Topics of which the broker was asked where their partitions are."""
        self.away = False
        self._told_ends: dict[At, int] = {}
        self._chosen = False
        self._on_assign: Any = None
        self._on_revoke: Any = None

    def subscribe(self, topics: Sequence[str], *, on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self._on_assign, self._on_revoke = on_assign, on_revoke

    def revoke(self) -> None:
        """The group shares out anew; who gets what is not known yet."""
        self._on_revoke(self, [])

    def consume(self, count: int, timeout_s: float) -> list["Message"]:
        if self.closed:
            raise RuntimeError("Consumer closed")
        if self.assignment_due is not None:
            assigned, self.assignment_due = self.assignment_due, None
            self._chosen = False
            self._on_assign(self, [PartitionOffset(*at) for at in assigned])
            if not self._chosen:  # then the library begins at the group's offsets, of which there are none
                lost = KafkaError(KafkaError._AUTO_OFFSET_RESET)
                self.errors_due += [Message(at, -1, None, lost) for at in assigned]
            return []
        found = [Message(at, record.offset, record) for at, record in self.take()]
        for at in self.places:
            end = self.group.end(at)
            if at not in self.paused and self._told_ends.get(at) != end:
                self._told_ends[at] = end
                found.append(Message(at, end, None, KafkaError(KafkaError._PARTITION_EOF)))
        due, self.errors_due = self.errors_due, []
        return found + due

    def list_topics(self, topic: str, timeout_s: float) -> None:
        self.asked.append(topic)
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def assign(self, partitions: Sequence[Any]) -> None:
        self._chosen = True
        self.places = {(each.topic, each.partition): each.offset for each in partitions}
        self._told_ends = {}

    def unassign(self) -> None:
        self.places = {}

    def pause(self, partitions: Sequence[Any]) -> None:
        self.paused |= self._fetched(partitions)

    def resume(self, partitions: Sequence[Any]) -> None:
        self.paused -= self._fetched(partitions)

    def _fetched(self, partitions: Sequence[Any]) -> set[At]:
        named = {(each.topic, each.partition) for each in partitions}
        assert named <= self.places.keys(), "librdkafka refuses partitions that it does not fetch"
        return named

    def consumer_group_metadata(self) -> str:
        return self.membership

    def memberid(self) -> str:
        return "member"

    def close(self) -> None:
        assert self.assignment_due is None, "told of it only now, librdkafka may wait for ever for the answer"
        self.closed = True


class Message:
    """`confluent_kafka.Message`."""

    def __init__(self, at: At, offset: int, record: Record | None, error: KafkaError | None = None) -> None:
        self._at, self._offset, self._record, self._error = at, offset, record, error

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return self._at[0]

    def partition(self) -> int:
        return self._at[1]

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 0 if self._record is None else self._record.timestamp_ms

    def key(self) -> bytes | None:
        return None if self._record is None else self._record.key

    def value(self) -> bytes | None:
        return None if self._record is None else self._record.value

    def headers(self) -> list[Any] | None:
        return None


@dataclass
class Fetched:
    """What kafka-python has fetched of a partition and not delivered yet; false once it is exhausted."""

    at: At
    records: list[Record]

    def __bool__(self) -> bool:
        return bool(self.records)


class FakeKafkaConsumer(_Member):
    """`kafka.KafkaConsumer`, whose polls deliver the core's records already.

    As in the library, one partition's fetch is in line for delivery, in `_fetcher._next_partition_records`. If it is
    paused meanwhile the fetch is set aside, and that partition is not fetched until this is taken back.
    """

    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self.most = 500
        """Records, in one poll."""
        self._aside: dict[At, Fetched] = {}
        self._listener: Any = None
        self._fetcher = SimpleNamespace(_next_partition_records=None, PartitionRecords=None)
        self._cluster = SimpleNamespace(
            topic_id=group.topic_ids.__getitem__,
            partitions_for_topic=lambda name: set(range(group.partitions)),
            request_update=lambda: None,
        )
        self.rejoins = 0
        self._coordinator = SimpleNamespace(
            rejoining=False,
            rejoin_needed=False,
            state=MemberState.STABLE,
            request_rejoin=self._rejoin,
            _generation=SimpleNamespace(member_id="member"),
        )

    def subscribe(self, topics: Sequence[str], listener: Any) -> None:
        self._listener = listener

    def hear(self) -> None:
        """The client's own thread takes the new assignment; no poll of ours has seen it."""
        assert self.assignment_due is not None
        assigned, self.assignment_due = self.assignment_due, None
        self._coordinator.rejoin_needed = False
        self.places, self.paused = dict.fromkeys(assigned, 0), set()
        self._drop(*self._aside, *assigned)
        self._listener.on_partitions_assigned({BrokerPartition(*at) for at in assigned})

    def poll(self, timeout_ms: int) -> dict[Any, list[Record]]:
        if self.assignment_due is not None:
            self.hear()
            return {}
        line, left = self._fetcher, self.most
        found: dict[Any, list[Record]] = {}
        if line._next_partition_records is None:
            back = next((at for at in self._aside if at not in self.paused), None)
            line._next_partition_records = None if back is None else self._aside.pop(back)
        while left:
            fetched: Fetched | None = line._next_partition_records
            if not fetched:
                at = next(filter(self._has_more, self.places), None)
                if at is None:
                    break
                line._next_partition_records = Fetched(at, self.group.records[at][self.places[at] :])
            elif fetched.at in self.paused:
                self._aside[fetched.at], line._next_partition_records = fetched, None
            else:
                delivered, fetched.records = fetched.records[:left], fetched.records[left:]
                found.setdefault(BrokerPartition(*fetched.at), []).extend(delivered)
                self.places[fetched.at] += len(delivered)
                left -= len(delivered)
        return found

    def _has_more(self, at: At) -> bool:
        fetched = at not in self.paused and at not in self._aside
        return fetched and self.places[at] < len(self.group.records[at])

    def _drop(self, *partitions: At) -> None:
        """What was fetched of these, and not delivered yet."""
        line = self._fetcher._next_partition_records
        for at in partitions:
            self._aside.pop(at, None)
            if line is not None and line.at == at:
                line.records = []

    def seek(self, at: Any, offset: int) -> None:
        self._drop(tuple(at))
        self.places[tuple(at)] = offset

    def pause(self, at: Any) -> None:
        self.paused.add(tuple(at))

    def resume(self, at: Any) -> None:
        self.paused.discard(tuple(at))

    def assignment(self) -> set[Any]:
        return {BrokerPartition(*at) for at in self.places}

    def position(self, at: Any, timeout_ms: int) -> int:
        place, records = self.places[tuple(at)], self.group.records[tuple(at)]
        return place if place < len(records) else self.group.end(tuple(at))

    def group_metadata(self) -> str:
        return self.membership

    def close(self, *, autocommit: bool, timeout_ms: int) -> None:
        assert not autocommit
        self.closed = True

    def _rejoin(self) -> None:
        self.rejoins += 1
