"""A Kafka client of the simulation: the two ports of the log's reader and writer, and the membership above them.

It behaves as the real ones do where that matters: requests whose connection ends are sent again, heartbeats go
on behind the worker's back, positions are sent with the membership that the records were polled under. `Client`
says which of the real ones' traps are open.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from mistakebound.core.records import (
    INPUTS,
    TOPICS,
    Outgoing,
    Position,
    Record,
    Topic,
    TopicPartition,
    Transaction,
)
from mistakebound.log.kafka.log import KafkaLog
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.ports import Ends, fenced, given_up, moved_on
from mistakebound.log.kafka.read import Reader
from mistakebound.log.kafka.session_checks import check_topics, check_transaction
from mistakebound.log.kafka.write import Writer
from mistakebound.log.partitioner import partition_of
from mistakebound.log.protocol import (
    LogError,
    OffsetLost,
    Polled,
    Receipt,
    Refused,
    Session,
    StaleGeneration,
    TopicDescription,
    Unreachable,
)
from mistakebound.settings import Settings
from tests.simulate import broker as brokers
from tests.simulate.broker import GROUP, BrokerError
from tests.simulate.leaders import MOVED, Place
from tests.simulate.network import ConnectionEnded, Network, NoAnswer
from tests.simulate.scheduler import Signal

Answer = TypeVar("Answer")
AGAIN_S = 0.1
ASKED_S = 20.0
POSITIONS_S = 45.0
HEARTBEAT_S = 1.0
LOOK_S = 0.2
METADATA_BYTES = 4_096
POSITIONS_TOLD, OUTPUTS_SENT = "positions told", "outputs sent"
"""Points at which faults may wait for a worker: amid a takeover, and amid a transaction."""
STALE = (brokers.IllegalGeneration, brokers.UnknownMember, brokers.RebalanceInProgress)


@dataclass(frozen=True)
class Client:
    """Which traps of the real clients are open."""

    asks_again: bool = False
    """A request that is not answered in time is sent again (librdkafka), or it is fatal (kafka-python)."""
    tells: bool = True
    """It tells that a request was sent again."""
    delivers_paused: bool = False
    """What was on its way when an input was paused."""
    reads_uncommitted: bool = False
    fences: bool = True
    """Positions are sent with the membership that their records were polled under."""
    knows_its_epoch: bool = True
    """A commit under an epoch that is over is an error."""
    waits_for_sends: bool = True
    """A batch that could not be sent ends the transaction."""
    waits_for_commits: bool = True
    """A commit without an answer is an error."""
    most_records: int = 50


def ask(
    network: Network, call: Callable[[], Answer], doing: str, *places: Place, seconds: float = ASKED_S
) -> Answer:
    """Ask until there is an answer. Raises Unreachable after so long, OffsetLost; other errors as they are."""
    scheduler = network.scheduler
    end_s = scheduler.now_s + seconds
    while True:
        try:
            return network.ask(call, *places)
        except (ConnectionEnded, NoAnswer, brokers.UnstableOffsets, *MOVED) as error:
            if scheduler.now_s > end_s:
                raise Unreachable(f"{doing}: {error!r}") from error
        except brokers.OffsetOutOfRange as error:
            raise OffsetLost(doing) from error
        except (brokers.UnknownPartition, brokers.RecordTooLarge) as error:
            raise Refused(f"{doing}: {error!r}; it is not there, or too large") from error
        scheduler.sleep(AGAIN_S)


def fetch(
    network: Network,
    nexts: dict[TopicPartition, int],
    most: int,
    doing: str,
    left_out: Collection[TopicPartition] = (),
    *,
    uncommitted: bool = False,
) -> list[Record]:
    """At most `most` offsets of each partition from `nexts` on, which moves on; nothing of those `left_out`."""
    asked = {at: start for at, start in nexts.items() if at not in left_out}
    if not asked:
        return []

    records: list[Record] = []
    for places in by_leader(network, asked):

        def call(places: Sequence[TopicPartition] = places) -> list[tuple[list[Record], int]]:
            return [network.broker.fetch(at, asked[at], most, uncommitted=uncommitted) for at in places]

        for at, (found, end) in zip(places, ask(network, call, doing, *places[:1]), strict=True):
            records += found
            nexts[at] = end
    return records


def await_more(
    network: Network,
    nexts: Mapping[TopicPartition, int],
    wait_s: float,
    left_out: Collection[TopicPartition] = (),
) -> bool:
    """As a fetch request waits at the brokers; False where nothing has come."""
    broker, asked = network.broker, [(at, start) for at, start in nexts.items() if at not in left_out]
    return network.scheduler.wait(
        broker.arrived, lambda: any(broker.log(at).stable > start for at, start in asked), wait_s
    )


def by_leader(network: Network, places: Iterable[TopicPartition]) -> list[list[TopicPartition]]:
    """What can be asked of one broker at a time."""
    if network.leaders.brokers == 1:
        return [list(places)]
    return [[each] for each in places]


class SimulatedFetcher:
    """`mistakebound.log.kafka.ports.Fetcher`."""

    def __init__(self, network: Network, client: Client) -> None:
        self._network, self._client = network, client
        self._next: dict[TopicPartition, int] = {}
        self._doing = ""
        self._closed = False

    def start(self, starts: Mapping[TopicPartition, int], doing: str) -> None:
        self._next, self._doing = dict(starts), doing

    def fetch(self, timeout_s: float) -> Sequence[Record]:
        scheduler = self._network.scheduler
        end_s = scheduler.now_s + timeout_s
        while True:
            most = 1 + scheduler.random.randrange(self._client.most_records)
            records = fetch(
                self._network, self._next, most, self._doing, uncommitted=self._client.reads_uncommitted
            )
            if records or scheduler.now_s >= end_s:
                return records
            if not await_more(self._network, self._next, max(LOOK_S, end_s - scheduler.now_s)):
                return []

    def position(self) -> int:
        (position,) = self._next.values()
        return position

    def rest(self) -> None:
        self._next, self._doing = {}, ""

    @property
    def follows(self) -> bool:
        """Whether it reads on and on: it neither rests nor is closed."""
        return self._doing.startswith("follow") and not self._closed

    def close(self) -> None:
        self._next, self._closed = {}, True


class SimulatedSender:
    """`mistakebound.log.kafka.ports.Sender`: its requests are sent one after another, as the clients do."""

    errors: ClassVar[tuple[type[Exception], ...]] = (BrokerError,)

    def __init__(self, network: Network, client: Client, transactional_id: str) -> None:
        self._network, self._client, self._id = network, client, transactional_id
        self._producer = self._epoch = -1
        self._batches: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, Sequence[Outgoing]] = {}
        self._again = False

    def initialise(self) -> None:
        broker, doing = self._network.broker, f"initialise transactions as {self._id}"
        end_s = self._network.scheduler.now_s + 30
        while True:
            try:
                self._producer, self._epoch = ask(
                    self._network, lambda: broker.initialise(self._id), doing, self._id
                )
            except brokers.ConcurrentTransactions as error:
                if self._network.scheduler.now_s > end_s:
                    raise Unreachable(doing) from error
                self._network.scheduler.sleep(AGAIN_S)
            else:
                return

    def begin(self) -> None:
        self._sent = {}

    def send(self, topic_partition: TopicPartition, records: Sequence[Outgoing], timeout_s: float) -> None:
        self._sent[topic_partition] = list(records)

    def flush(self, timeout_s: float) -> Ends:
        broker, producer, epoch = self._network.broker, self._producer, self._epoch
        partitions = list(self._sent)
        self._ask(lambda: broker.add_partitions(producer, epoch, partitions), timeout_s, self._id)
        ends: Ends = {}
        self._network.scheduler.random.shuffle(partitions)
        for at in partitions:
            number = self._batches.get(at, -1) + 1
            records = self._sent[at]
            try:
                ends[at] = self._ask(
                    lambda at=at, records=records, number=number: broker.produce(
                        producer, epoch, at, records, number
                    ),
                    timeout_s,
                    at,
                    numbered=True,
                )
            except BrokerError:
                if self._client.waits_for_sends:
                    raise
                ends[at] = broker.log(at).end
            self._batches[at] = number
        return ends

    def send_positions(self, positions: Mapping[int, Position], member: Any, timeout_s: float) -> None:
        broker, producer, epoch, copied = self._network.broker, self._producer, self._epoch, dict(positions)
        self._ask(lambda: broker.add_group(producer, epoch), timeout_s, self._id)
        self._network.scheduler.come_by(OUTPUTS_SENT)
        fencing = member if self._client.fences else None
        self._ask(lambda: broker.offsets(producer, epoch, fencing, copied), timeout_s, GROUP)

    def commit(self, timeout_s: float) -> None:
        try:
            self._end(timeout_s, commit=True)
        except brokers.InvalidProducerEpoch:
            if self._client.knows_its_epoch:
                raise
        except (ConnectionEnded, NoAnswer):
            if self._client.waits_for_commits:
                raise

    def abort(self, timeout_s: float) -> None:
        with suppress(BrokerError):
            self._end(timeout_s, commit=False)

    def sent_again(self) -> bool:
        return self._again and self._client.tells

    def explain(self, error: Exception) -> LogError:
        if isinstance(error, brokers.InvalidProducerEpoch):
            return fenced(self._id, error)
        return moved_on() if isinstance(error, STALE) else given_up(self._id, repr(error))

    def discard(self) -> None:
        self._sent = {}

    def _end(self, timeout_s: float, *, commit: bool) -> None:
        broker, producer, epoch = self._network.broker, self._producer, self._epoch
        self._ask(lambda: broker.end(producer, epoch, commit=commit), timeout_s, self._id)

    def _ask(
        self, call: Callable[[], Answer], timeout_s: float, place: Place, *, numbered: bool = False
    ) -> Answer:
        """Send the request, and again where its connection ends. A batch has a number by which it is known."""
        scheduler = self._network.scheduler
        end_s = scheduler.now_s + timeout_s
        while True:
            try:
                return self._network.ask(call, place)
            except (brokers.ConcurrentTransactions, *MOVED):
                if scheduler.now_s > end_s:
                    raise
            except (ConnectionEnded, NoAnswer) as error:
                self._again |= not numbered
                if scheduler.now_s > end_s or (isinstance(error, NoAnswer) and not self._client.asks_again):
                    raise
            scheduler.sleep(AGAIN_S / 4)


class SimulatedSession:
    """`mistakebound.log.protocol.Session`, by the same rules as the real ones."""

    def __init__(
        self, network: Network, client: Client, cluster: "Cluster", slot: str, writer: Writer
    ) -> None:
        self._network, self._client, self._cluster, self._writer = network, client, cluster, writer
        self._client_id = cluster.connection.client_id(slot)
        self._scheduler = network.scheduler
        self._member_id: str | None = None
        self._membership: tuple[str, int] | None = None
        """Of the generation that the records are of."""
        self._must_join = True
        self._count = 0
        self._owned: tuple[int, ...] = ()
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._closed = False
        self._now: tuple[str, int, tuple[int, ...]] | None = None
        """Membership and assignment as the client has it, adopted by a poll or not."""
        self._heard: tuple[str, int, tuple[int, ...]] | None = None
        """The same, while it is not adopted."""
        self.told: dict[int, Position | None] = {}
        """The committed positions that it was told last."""
        self._ids: dict[str, str] = {**network.broker.ids}
        self._is_joining, self._joined = False, Signal()
        self._scheduler.spawn(self._behind_our_back, "client")

    def poll(self, timeout_s: float) -> Polled:
        broker = self._network.broker
        counts: dict[str, int] = {topic: broker.counts[topic] for topic in INPUTS}
        check_topics(counts, broker.partitions, {**broker.ids}, self._ids)
        end_s = self._scheduler.now_s + timeout_s
        while True:
            if self._must_join:
                if self._join(max(end_s, self._scheduler.now_s + 3)):
                    return Polled(self._count, self._owned, ())
                return Polled(self._count, self._owned if self._count else (), ())
            records = self._fetch()
            left_s = end_s - self._scheduler.now_s
            if records or left_s <= 0 or not await_more(self._network, self._next, left_s, self._paused):
                return Polled(self._count, self._owned, records)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        self._writer.settle()
        self.told = self._cluster.positions(sorted(partitions))
        self._scheduler.come_by(POSITIONS_TOLD)
        return self.told

    def seek(self, partition: int, examples: int, labels: int) -> None:
        if partition not in self._owned:
            raise StaleGeneration(f"partition {partition} is not owned")
        for topic, offset in zip(INPUTS, (examples, labels), strict=True):
            self._next[topic, partition] = offset

    def drained(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        return {at for at, left in self.undelivered(topic_partitions).items() if not left}

    def undelivered(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked = [at for at in topic_partitions if at in self._next]
        ends = self._cluster.stable_ends(asked) if asked else {}
        return {at: max(0, ends[at] - self._next[at]) for at in asked}

    def pass_damage(self) -> None: ...

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self._paused.update(topic_partitions)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(topic_partitions)

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        check_transaction(transaction, generation, self._count, self._owned, METADATA_BYTES)
        try:
            return Receipt(self._writer.write(transaction.outputs, transaction.positions, self._membership))
        except StaleGeneration:
            if not self._must_join:
                self._must_join, self._heard = True, None
            with suppress(BrokerError):
                self._network.ask(lambda: self._network.broker.rejoin(str(self._member_id)), GROUP)
            raise

    @property
    def is_member(self) -> bool:
        """Whether the group still has it, as the broker knows."""
        return self._member_id in self._network.broker.group.members

    def close(self, timeout_s: float) -> None:
        self._closed = True
        self._writer.drop()
        # Amid a join it waits for the answer, to leave under the name that this brings.
        self._scheduler.wait(self._joined, lambda: not self._is_joining, timeout_s)
        member_id = self._member_id
        if member_id is not None:
            with suppress(BrokerError, LogError):
                broker = self._network.broker
                ask(self._network, lambda: broker.leave(member_id), "leave", GROUP, seconds=timeout_s)

    def _join(self, end_s: float) -> bool:
        """Adopt the assignment, once the client has heard of it behind our back."""
        while self._heard is None:
            if self._scheduler.now_s > end_s:
                return False
            self._scheduler.sleep(LOOK_S)
        (*member, self._owned), self._heard = self._heard, None
        self._membership = member[0], member[1]
        self._must_join = False
        self._count += 1
        self._next.clear()
        self._paused.clear()
        return True

    def _fetch(self) -> list[Record]:
        most, doing = (
            1 + self._scheduler.random.randrange(self._client.most_records),
            "read examples and labels",
        )
        records = fetch(self._network, self._next, most, doing, self._paused)
        if self._client.delivers_paused:
            # What was on its way when they were paused; once they are resumed, it comes again.
            again = {at: start for at, start in self._next.items() if at in self._paused}
            records += fetch(self._network, again, most, doing)
        return records

    def _behind_our_back(self) -> None:
        """What the client's own thread does: it joins, and says from time to time that it is there."""
        chance = self._scheduler.random
        while not self._closed:
            if self._must_join and self._heard is None:
                self._scheduler.sleep(LOOK_S * chance.random())
                if not self._closed:
                    self._ask_to_join()
            else:
                self._scheduler.sleep(HEARTBEAT_S * (0.5 + chance.random()))
                self._beat()

    def _ask_to_join(self) -> None:
        broker = self._network.broker
        self._is_joining = True
        with suppress(ConnectionEnded, NoAnswer, *MOVED):
            found = self._network.ask(lambda: broker.join(self._member_id, self._client_id), GROUP)
            if isinstance(found, tuple):
                self._member_id, *_ = self._heard = self._now = found
            else:
                self._member_id = found
        self._is_joining = False
        self._scheduler.fire(self._joined)

    def _beat(self) -> None:
        known = self._now
        if known is None or self._closed:
            return
        try:
            self._network.ask(lambda: self._network.broker.heartbeat(*known[:2]), GROUP)
        except STALE as error:
            if known == self._now:
                self._must_join, self._heard = True, None
                if isinstance(error, brokers.UnknownMember):
                    self._member_id = None
        except BrokerError:
            pass


class NoWatchdog:
    """Calls of the simulation return."""

    @contextmanager
    def limit(self, seconds: float, what: str) -> Any:
        yield

    def close(self) -> None: ...


class Connection(NamedTuple):
    """What the log asks of `make_clients.Connection`."""

    group: str
    max_request_bytes: int = 1_000_000

    def client_id(self, slot: str) -> str:
        return f"{self.group}-{slot}"


class Admin:
    """What the log asks of `admin.Admin`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def partitions(self) -> int:
        return self._network.broker.partitions

    def describe(self, wanted: Collection[Topic] = TOPICS) -> dict[Topic, TopicDescription | None]:
        broker = self._network.broker
        return {
            topic: TopicDescription(broker.names[topic], broker.ids[topic], broker.counts[topic], {})
            for topic in wanted
        }

    def low_watermark(self, topic: Topic, partition: int) -> int:
        broker = self._network.broker
        return ask(
            self._network, lambda: broker.log((topic, partition)).low, "ask for the ends", (topic, partition)
        )

    def high_watermark(self, topic: Topic, partition: int) -> int:
        broker = self._network.broker
        return ask(
            self._network, lambda: broker.log((topic, partition)).end, "ask for the ends", (topic, partition)
        )

    def max_message_bytes(self, topic: Topic) -> int:
        return min(1_000_000, self._network.broker.most_bytes)

    def partition_count(self, topic: Topic) -> int:
        return self.partitions()

    def other_readers(self) -> dict[str, frozenset[Topic]]:
        return {}

    def evict(self, client_id: str) -> None:
        with suppress(BrokerError):
            self._network.ask(lambda: self._network.broker.evict(client_id), GROUP)

    def close(self) -> None: ...


class Cluster:
    """What the log asks of `cluster.Cluster`."""

    def __init__(self, settings: Settings, network: Network) -> None:
        self.names = Names.of(settings)
        self.connection = Connection(settings.group)
        self.watchdog = NoWatchdog()
        self.admin = Admin(network)
        self._network = network

    def positions(self, partitions: Sequence[int]) -> dict[int, Position | None]:
        broker, wanted = self._network.broker, list(partitions)
        return ask(
            self._network,
            lambda: broker.positions(wanted),
            "read the committed positions",
            GROUP,
            seconds=POSITIONS_S,
        )

    def stable_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        network, doing = self._network, "ask for the ends"
        found: dict[TopicPartition, int] = {}
        for places in by_leader(network, topic_partitions):

            def call(places: Sequence[TopicPartition] = places) -> dict[TopicPartition, int]:
                return {at: network.broker.log(at).stable for at in places}

            found |= ask(network, call, doing, *places[:1])
        return found

    def close(self) -> None: ...


class _Client:
    """`mistakebound.log.kafka.log.Client`."""

    def __init__(self, network: Network, client: Client, cluster: Cluster) -> None:
        self._network, self._client, self._cluster = network, client, cluster
        self.fetchers: list[SimulatedFetcher] = []
        self.last: SimulatedSession | None = None

    def fetcher(self, *, follows: bool) -> SimulatedFetcher:
        self.fetchers.append(SimulatedFetcher(self._network, self._client))
        return self.fetchers[-1]

    def sender(self, transactional_id: str) -> SimulatedSender:
        return SimulatedSender(self._network, self._client, transactional_id)

    def session(self, partitions: int, slot: str, writer: Writer) -> Session:
        self.last = SimulatedSession(self._network, self._client, self._cluster, slot, writer)
        return self.last


class SimulatedLog(KafkaLog):
    """The log on Kafka, as it is in production, above the model."""

    def __init__(self, settings: Settings, network: Network, client: Client) -> None:
        cluster: Any = Cluster(settings, network)
        self._cluster, self._network = cluster, network
        self._client: Any = _Client(network, client, cluster)
        self._reader = Reader(self._client.fetcher, cluster.names, self, cluster.watchdog)

    @property
    def following(self) -> int:
        """Clients that follow."""
        return sum(1 for each in self._client.fetchers if each.follows)

    @property
    def told(self) -> Mapping[int, Position | None]:
        """The committed positions that its last session was told last."""
        return {} if self._client.last is None else self._client.last.told

    @property
    def is_member(self) -> bool:
        """Whether its last session is still in the group."""
        return self._client.last is not None and self._client.last.is_member

    def append(self, records: Iterable[Outgoing]) -> int:
        network, count = self._network, 0
        for each in records:
            placed = each.partition if each.partition >= 0 else partition_of(each.key, self.partitions)
            one = [each._replace(partition=placed)]
            try:
                ask(network, lambda one=one: network.broker.append(one), "append", (each.topic, placed))  # type: ignore[misc]
            except LogError as error:
                error.acknowledged = count
                raise
            count += 1
        return count

    def close(self) -> None: ...
