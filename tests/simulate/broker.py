"""A model of the brokers: partitions, the transaction coordinator, the group's coordinator.

It keeps what Kafka 4 keeps with the clients' present protocol (before the second part of KIP-890): all transactions of
a client have one epoch; offsets and markers become visible one partition after another; the group's positions
are pending until their marker is there. The brokers forget nothing: a crash only takes them away for a while.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mistakebound.core.records import INPUTS, TOPICS, Outgoing, Position, Record, TopicPartition
from tests.simulate.scheduler import Scheduler, Signal

TRANSACTION_S = 10.0
"""After so long the broker aborts a worker's transaction."""
STRANGERS_S = 300.0
"""The same, of another program."""
SESSION_S = 10.0
REBALANCE_S = 8.0
SWEEP_S = 1.0
MOST_BYTES = 1_048_000
GROUP = "the group"
MARKER_S = 0.05
"""At most so long after another do a transaction's markers arrive, as a rule."""


class BrokerError(Exception):
    """An answer that is an error; its class is Kafka's name for it."""


class ConcurrentTransactions(BrokerError): ...


class InvalidProducerEpoch(BrokerError): ...


class InvalidTransactionState(BrokerError): ...


class OutOfOrderSequence(BrokerError): ...


class IllegalGeneration(BrokerError): ...


class UnknownMember(BrokerError): ...


class RebalanceInProgress(BrokerError): ...


class UnstableOffsets(BrokerError): ...


class OffsetOutOfRange(BrokerError): ...


class UnknownPartition(BrokerError): ...


class RecordTooLarge(BrokerError): ...


class StorageError(BrokerError): ...


Fate = Literal["open", "committed", "aborted"]


@dataclass
class Span:
    """What one transaction wrote to one partition."""

    producer: int
    fate: Fate = "open"


@dataclass
class PartitionLog:
    """Records and markers of one partition; a marker is None."""

    entries: list[tuple[Record | None, Span | None]] = field(default_factory=list)
    low: int = 0
    open: dict[int, tuple[int, Span]] = field(default_factory=dict)
    """Producer -> the first offset of its open transaction here."""
    epochs: dict[int, int] = field(default_factory=dict)
    sequences: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(Producer, epoch) -> the number of its last batch, and the offset after it."""

    @property
    def end(self) -> int:
        return len(self.entries)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min((first for first, _ in self.open.values()), default=self.end)

    def committed(self, start: int, stop: int) -> list[Record]:
        """Committed records of start <= offset < stop."""
        return [
            record
            for record, span in self.entries[start:stop]
            if record is not None and (span is None or span.fate == "committed")
        ]


State = Literal["empty", "ongoing", "committing", "aborting", "committed", "aborted"]


@dataclass(eq=False)
class Transactions:
    """One transactional id."""

    producer: int
    epoch: int = 0
    state: State = "empty"
    partitions: set[TopicPartition] = field(default_factory=set)
    group: bool = False
    number: int = 0
    """Counts its transactions, so that a time-out meant for an earlier one does nothing."""


@dataclass(eq=False)
class Member:
    """One member of the group."""

    id: str
    client_id: str
    seen_s: float
    joined: bool = True
    """Whether it joined since the rebalance began."""
    partitions: tuple[int, ...] = ()


@dataclass
class Group:
    """The one consumer group, by the eager protocol."""

    members: dict[str, Member] = field(default_factory=dict)
    generation: int = 0
    rebalancing: bool = False
    until_s: float = 0.0
    committed: dict[int, Position] = field(default_factory=dict)
    pending: dict[int, dict[int, Position]] = field(default_factory=dict)
    """Producer -> positions of its open transaction."""


class Broker:
    """Everything the brokers know. Calls are answered at once; the network (`network.py`) takes the time."""

    def __init__(
        self,
        scheduler: Scheduler,
        partitions: int,
        now_ms: Callable[[], int],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`most_bytes`: the largest record that an output topic takes."""
        self.partitions = partitions
        self.most_bytes = most_bytes
        self.counts = dict.fromkeys(TOPICS, partitions)
        """As metadata tells them."""
        self.names = {topic: f"s.{topic}" for topic in TOPICS}
        self.ids = {topic: f"id-of-{topic}" for topic in TOPICS}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.group = Group()
        self.down = False
        self.leads: Any = None
        """Who leads what, where there are several brokers (`leaders.py`)."""
        self.stalled_until_s = 0.0
        self.slow_markers_s = MARKER_S
        self.arrived = Signal()
        """Fires when there may be more to read."""
        self.disk_full_until_s = 0.0
        """Until then no batch is taken."""
        self.decided: set[tuple[int, Position]] = set()
        """Every position whose transaction was decided to be committed, by partition."""
        self._scheduler, self._now_ms = scheduler, now_ms
        self._ids: dict[str, Transactions] = {}
        self._members = self._producers = 0
        self._sweep()

    # --- partitions ------------------------------------------------------------------------------

    def log(self, at: TopicPartition) -> PartitionLog:
        if not 0 <= at[1] < self.partitions:
            raise UnknownPartition
        return self.logs.setdefault(at, PartitionLog())

    def forget(self, at: TopicPartition, before: int) -> None:
        """Delete the records below this offset, as retention does."""
        self.log(at).low = before

    def append(self, records: Iterable[Outgoing]) -> None:
        """Outside any transaction: all, or none where one cannot be taken."""
        written = list(records)
        for record in written:
            self.log((record.topic, record.partition))
            self._check_size(record)
        for record in written:
            self._append((record.topic, record.partition), record, None)

    def produce(
        self, producer: int, epoch: int, at: TopicPartition, records: Sequence[Outgoing], number: int
    ) -> int:
        """One batch of a transaction; returns the offset after it. A batch that came before is not written again."""
        found, log = self._of(producer), self.log(at)
        if epoch < log.epochs.get(producer, -1) or epoch != found.epoch:
            raise InvalidProducerEpoch
        last, end = log.sequences.get((producer, epoch), (-1, 0))
        if number <= last:
            return end
        if number != last + 1:
            raise OutOfOrderSequence
        if found.state != "ongoing" or at not in found.partitions:
            raise InvalidTransactionState
        for record in records:
            self._check_size(record)
        if self._scheduler.now_s < self.disk_full_until_s:
            raise StorageError
        if producer not in log.open:
            log.open[producer] = log.end, Span(producer)
        for record in records:
            self._append(at, record, log.open[producer][1])
        log.epochs[producer] = epoch
        log.sequences[producer, epoch] = number, log.end
        return log.end

    def fetch(
        self, at: TopicPartition, start: int, most: int, *, uncommitted: bool = False
    ) -> tuple[list[Record], int]:
        """Committed records from `start` below the last stable offset, and the next offset to fetch; or all records."""
        log = self.log(at)
        if not log.low <= start <= log.end:
            raise OffsetOutOfRange
        if uncommitted:
            stop = min(start + most, log.end)
            return [record for record, _ in log.entries[start:stop] if record is not None], max(start, stop)
        stop = min(start + most, log.stable)
        return log.committed(start, stop), max(start, stop)

    def _append(self, at: TopicPartition, record: Outgoing, span: Span | None) -> None:
        log = self.log(at)
        stamp = self._now_ms() if record.timestamp_ms is None else record.timestamp_ms
        written = Record(*at, log.end, stamp, record.key, record.value, record.headers)
        log.entries.append((written, span))
        if span is None:
            self._scheduler.fire(self.arrived)

    # --- transactions ----------------------------------------------------------------------------

    def initialise(self, transactional_id: str) -> tuple[int, int]:
        """The producer's number and its new epoch; what was open under the id is ended first."""
        if transactional_id not in self._ids:
            self._producers += 1
            self._ids[transactional_id] = Transactions(self._producers)
            return self._producers, 0
        found = self._ids[transactional_id]
        if found.state == "ongoing":
            found.epoch += 1
            self._end(found, commit=False)
        if found.state in ("committing", "aborting"):
            raise ConcurrentTransactions
        found.epoch += 1
        found.state = "empty"
        return found.producer, found.epoch

    def leave_open(self, transactional_id: str, at: TopicPartition) -> Callable[[], None]:
        """A transaction of somebody else's with one record, which stays open until what is returned is called."""
        producer, epoch = self.initialise(transactional_id)
        found = self._begin(producer, epoch, STRANGERS_S)
        found.partitions.add(at)
        self.produce(producer, epoch, at, [Outgoing(*at, b"stranger", b"never committed")], 0)

        def abort() -> None:
            if found.state == "ongoing":
                self._end(found, commit=False)

        return abort

    def add_partitions(self, producer: int, epoch: int, partitions: Iterable[TopicPartition]) -> None:
        self._begin(producer, epoch).partitions.update(partitions)

    def add_group(self, producer: int, epoch: int) -> None:
        self._begin(producer, epoch).group = True

    def offsets(
        self, producer: int, epoch: int, member: tuple[str, int] | None, positions: Mapping[int, Position]
    ) -> None:
        """Positions of the transaction, on behalf of a member of a generation; None: of nobody, which no broker refuses."""
        found = self._of(producer)
        if epoch != found.epoch:
            raise InvalidProducerEpoch
        if found.state != "ongoing" or not found.group:
            raise InvalidTransactionState
        if member is not None:
            self._check_member(*member)
        self.group.pending.setdefault(producer, {}).update(positions)

    def end(self, producer: int, epoch: int, *, commit: bool) -> None:
        """Decide how the transaction ends. Asked again for the same end, it is done."""
        found = self._of(producer)
        if epoch != found.epoch:
            raise InvalidProducerEpoch
        match found.state, commit:
            case "ongoing", _:
                self._end(found, commit=commit)
            case ("committing", True) | ("aborting", False):
                raise ConcurrentTransactions
            case ("committed", True) | ("aborted", False):
                pass
            case _:
                raise InvalidTransactionState

    def _of(self, producer: int) -> Transactions:
        return next(each for each in self._ids.values() if each.producer == producer)

    def _begin(self, producer: int, epoch: int, seconds: float = TRANSACTION_S) -> Transactions:
        found = self._of(producer)
        if epoch != found.epoch:
            raise InvalidProducerEpoch
        if found.state in ("committing", "aborting"):
            raise ConcurrentTransactions
        if found.state != "ongoing":
            found.state, found.partitions, found.group = "ongoing", set(), False
            found.number += 1
            number = found.number
            self._scheduler.after(seconds, lambda: self._time_out(found, number))
        return found

    def _time_out(self, found: Transactions, number: int) -> None:
        if found.state == "ongoing" and found.number == number:
            found.epoch += 1
            self._end(found, commit=False)

    def _end(self, found: Transactions, *, commit: bool) -> None:
        found.state = "committing" if commit else "aborting"
        if commit:
            self.decided.update(self.group.pending.get(found.producer, {}).items())
        places: list[Any] = [*sorted(found.partitions), *([None] if found.group else [])]
        self._scheduler.random.shuffle(places)
        left = len(places)
        number = found.number

        def mark(place: TopicPartition | None) -> None:
            nonlocal left
            if self._is_away(place or GROUP):  # the marker is written once its broker is back
                self._scheduler.after(SWEEP_S, lambda: mark(place))
                return
            if place is None:
                positions = self.group.pending.pop(found.producer, {})
                if commit:
                    self.group.committed.update(positions)
            else:
                self._mark(self.log(place), found, commit=commit)
            left -= 1
            done()

        def done() -> None:
            if left == 0 and found.number == number:
                found.state = "committed" if commit else "aborted"

        for place in places:
            delay_s = self._scheduler.random.random() ** 3 * self.slow_markers_s
            self._scheduler.after(delay_s, lambda place=place: mark(place))
        done()

    def _mark(self, log: PartitionLog, found: Transactions, *, commit: bool) -> None:
        _, span = log.open.pop(found.producer, (0, None))
        if span is not None:
            span.fate = "committed" if commit else "aborted"
        log.epochs[found.producer] = max(found.epoch, log.epochs.get(found.producer, 0))
        log.entries.append((None, None))
        self._scheduler.fire(self.arrived)

    # --- the group -------------------------------------------------------------------------------

    def join(self, member_id: str | None, client_id: str) -> tuple[str, int, tuple[int, ...]] | str:
        """(Member, generation, partitions) once the group has been shared out anew, else the member's id."""
        group = self.group
        if member_id is None or member_id not in group.members:
            self._members += 1
            member_id = f"{client_id}-{self._members}"
            group.members[member_id] = Member(member_id, client_id, self._scheduler.now_s)
            self._rebalance(member_id)
        member = group.members[member_id]
        member.seen_s = self._scheduler.now_s
        if group.rebalancing:
            member.joined = True
            if all(each.joined for each in group.members.values()):
                self._share_out()
        elif not member.joined:
            self._rebalance(member_id)
        return member_id if group.rebalancing else (member_id, group.generation, member.partitions)

    def rejoin(self, member_id: str) -> None:
        """A member asks for a rebalance."""
        if member_id in self.group.members and not self.group.rebalancing:
            self._rebalance(member_id)

    def heartbeat(self, member_id: str, generation: int) -> None:
        self._check_member(member_id, generation)
        self.group.members[member_id].seen_s = self._scheduler.now_s
        if self.group.rebalancing:
            raise RebalanceInProgress

    def leave(self, member_id: str) -> None:
        if self.group.members.pop(member_id, None) is not None:
            self._rebalance(None)

    def evict(self, client_id: str) -> None:
        for member in [each for each in self.group.members.values() if each.client_id == client_id]:
            self.leave(member.id)

    def positions(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        """Committed positions; raises while a transaction is open on one of them."""
        wanted = list(partitions)
        if any(set(wanted) & set(positions) for positions in self.group.pending.values()):
            raise UnstableOffsets
        return {p: self.group.committed.get(p) for p in wanted}

    def _check_member(self, member_id: str, generation: int) -> None:
        if member_id not in self.group.members:
            raise UnknownMember
        if generation != self.group.generation:
            raise IllegalGeneration

    def _rebalance(self, joined: str | None) -> None:
        group = self.group
        if not group.rebalancing:
            for each in group.members.values():
                each.joined = False
            group.rebalancing = True
        group.until_s = self._scheduler.now_s + REBALANCE_S
        if joined is not None:
            group.members[joined].joined = True
        if not group.members:
            group.rebalancing = False

    def _share_out(self) -> None:
        group = self.group
        group.generation += 1
        group.rebalancing = False
        members = sorted(group.members.values(), key=lambda each: each.id)
        share, more = divmod(self.partitions, len(members))
        begin = 0
        for index, member in enumerate(members):
            count = share + (index < more)
            member.partitions = tuple(range(begin, begin + count))
            begin += count

    def _sweep(self) -> None:
        self._scheduler.after(SWEEP_S, self._sweep)
        group, now_s = self.group, self._scheduler.now_s
        if self._is_away(GROUP) or now_s < self.stalled_until_s:
            for each in group.members.values():  # nobody can be heard
                each.seen_s = now_s
            return
        dead = [each.id for each in group.members.values() if now_s - each.seen_s > SESSION_S]
        if group.rebalancing and now_s > group.until_s:
            dead += [each.id for each in group.members.values() if not each.joined]
        for member_id in dict.fromkeys(dead):
            del group.members[member_id]
        if dead and not group.rebalancing:
            self._rebalance(None)
        if group.rebalancing and group.members and all(each.joined for each in group.members.values()):
            self._share_out()

    def _is_away(self, place: TopicPartition | str) -> bool:
        return self.down or (self.leads is not None and not self.leads.answers(place))

    def _check_size(self, record: Outgoing) -> None:
        most = MOST_BYTES if record.topic in INPUTS else self.most_bytes
        if len(record.value or b"") + len(record.key or b"") > most:
            raise RecordTooLarge
