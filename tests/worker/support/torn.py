"""A log one of whose transactions is torn, as a stray request of an earlier one can tear it on a broker."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mistakebound.core.audit import Findings, audit
from mistakebound.core.records import TOPICS, Outgoing, Transaction
from mistakebound.log.protocol import Log, Receipt, Session
from mistakebound.settings import Settings
from tests.core.support.audited import Lists
from tests.worker.support.working import Run, stream

Keep = Callable[[Sequence[Outgoing]], Iterable[Outgoing]]
"""What is left of a transaction's outputs."""
SIZE = 10


class Killed(Exception):
    """The worker is gone."""


class Torn:
    """Tears the transaction number `at`: what `keep` leaves of its outputs is committed, and perhaps its positions.

    Written by other transactions of their own, so that each is whole to the log. The worker dies there, or goes on
    unawares.
    """

    def __init__(
        self,
        log: Log,
        at: int,
        keep: Keep,
        *,
        positions: bool = False,
        lying: bool = False,
        once: bool = False,
    ) -> None:
        self._log, self._at, self._keep, self._positions = log, at, keep, positions
        self._lying = lying
        """The worker is told that all went well."""
        self._last = at + 1 if once else None
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Session:
        made: Any = _TornSession(self, self._log.join(slot))
        found: Session = made
        return found

    def commit(self, session: Session, transaction: Transaction, generation: int) -> Any:
        self.commits += 1
        if self.commits <= self._at or (self._last is not None and self.commits > self._last):
            return session.commit(transaction, generation)
        kept = list(self._keep(transaction.outputs))
        if kept:
            self._log.exclusively(lambda: kept)
        if self._positions:
            session.commit(Transaction((), transaction.positions), generation)
        if self._lying:
            ends = {
                (each.topic, each.partition): self._log.high_watermark(each.topic, each.partition)
                for each in transaction.outputs
            }
            return Receipt(ends)
        raise Killed


class _TornSession:
    def __init__(self, log: Torn, session: Session) -> None:
        self._torn, self._session = log, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def commit(self, transaction: Transaction, generation: int) -> Any:
        return self._torn.commit(self._session, transaction, generation)


def tear(log: Log, settings: Settings, keep: Keep, *, at: int = 3, positions: bool = False) -> None:
    """Work on a stream until its step number `at` is torn."""
    log.append(stream(60, seed=3, partitions=log.partitions))
    try:
        Run(Torn(log, at, keep, positions=positions), settings)
    except Killed:
        return
    raise AssertionError("the worker was to be killed")


def of(*topics: str) -> Keep:
    """All records of these topics."""
    return lambda outputs: [each for each in outputs if each.topic in topics]


def first_of(count: int, topic: str, *others: str) -> Keep:
    """The first records of a topic, and all of the others."""

    def keep(outputs: Sequence[Outgoing]) -> Iterable[Outgoing]:
        yield from [each for each in outputs if each.topic == topic][:count]
        yield from [each for each in outputs if each.topic in others]

    return keep


def all_but_one(topic: str, *others: str) -> Keep:
    """All records but the last one of a topic, and all of the others."""

    def keep(outputs: Sequence[Outgoing]) -> Iterable[Outgoing]:
        yield from [each for each in outputs if each.topic == topic][:-1]
        yield from [each for each in outputs if each.topic in others]

    return keep


def lists_of(log: Log) -> Lists:
    """The whole log, to alter."""
    records = {(t, p): list(log.read(t, p, 0)) for t in TOPICS for p in range(log.partitions)}
    return Lists(log.partitions, records)


def audited(log: Log, settings: Settings) -> Findings:
    """What the audit says of the whole log."""
    return audit(lists_of(log), settings.messages, [], Findings())
