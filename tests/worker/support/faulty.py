"""A real log whose sessions fail at chosen calls, as a broker's would."""

from collections.abc import Iterable, Mapping
from typing import Any

from mistakebound.core.records import Position, Record, Topic, Transaction
from mistakebound.log.protocol import (
    Fenced,
    Log,
    Polled,
    Receipt,
    Session,
    StaleGeneration,
    TransactionFailed,
    Unreachable,
)

COMMIT_FAULTS = ("stale", "failed", "fenced", "unreachable", "unreachable though written")
POLL_FAULTS = ("rebalance", "shrink", "unreachable", "fenced")

PORTION = 5
"""Records that a poll brings: few, so that steps begin while much of the input is still to come."""

Call = tuple[str, int]
"""(`poll`, `commit`, `committed`, `drained` or `join`; how many of them came before)"""


class FaultyLog:
    """Passes everything on, except that `faults` happen at the calls that they name."""

    def __init__(self, log: Log, faults: Mapping[Call, str]) -> None:
        self._log, self._faults = log, dict(faults)
        self._calls: dict[str, int] = {}
        self.generation = 0
        self.happened: list[str] = []
        self.shrunk = 0
        """Polls for which the last partition is another worker's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Session:
        self.fail("join")
        self.generation += 1
        self.shrunk = 0
        return _FaultySession(self, self._log.join(slot))

    def fail(self, call: str) -> str | None:
        """The fault due at this call; the ones that are mere errors are raised."""
        number = self._calls.get(call, 0)
        self._calls[call] = number + 1
        fault = self._faults.get((call, number)) or self._faults.get((call, -1))
        if fault is not None:
            self.happened.append(fault)
        if fault == "fenced":
            raise Fenced("another process took the slot")
        if fault == "failed":
            raise TransactionFailed("the transaction was given up")
        if fault == "unreachable":
            raise Unreachable("the broker does not answer")
        return fault


class _FaultySession:
    def __init__(self, log: FaultyLog, session: Session) -> None:
        self._log, self._session = log, session
        self._announced = -1
        self._owned: tuple[int, ...] = ()
        self._fetched: list[Record] = []
        self._paused: set[tuple[Topic, int]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def poll(self, timeout_s: float) -> Polled:
        fault = self._log.fail("poll")
        if self._log.shrunk:
            self._log.shrunk -= 1
            if not self._log.shrunk:
                self._log.generation += 1
        if fault in ("rebalance", "shrink"):
            self._log.generation += 1
            self._log.shrunk = 3 if fault == "shrink" else 0
        if not self._ready():
            self._fetched += self._session.poll(0.0).records  # nobody writes: waiting would be in vain
        if self._announced != self._log.generation:
            # Positions stay where they were: a worker that does not seek goes on from a wrong place.
            self._announced = self._log.generation
            self._paused.clear()
            whole = tuple(range(self._log.partitions))
            self._owned = whole[:-1] if self._log.shrunk and len(whole) > 1 else whole
            return Polled(self._announced, self._owned, ())
        portion = self._ready()[:PORTION]
        self._fetched = [record for record in self._fetched if record not in portion]
        return Polled(
            self._announced, self._owned, [each for each in portion if each.partition in self._owned]
        )

    def _ready(self) -> list[Record]:
        return [record for record in self._fetched if (record.topic, record.partition) not in self._paused]

    def pause(self, sides: Iterable[tuple[Topic, int]]) -> None:
        self._paused.update(sides)

    def resume(self, sides: Iterable[tuple[Topic, int]]) -> None:
        self._paused.difference_update(sides)

    def seek(self, partition: int, examples: int, labels: int) -> None:
        self._fetched = [record for record in self._fetched if record.partition != partition]
        self._session.seek(partition, examples, labels)

    def committed(self, partitions: Iterable[int]) -> dict[int, Position | None]:
        self._log.fail("committed")
        return self._session.committed(partitions)

    def drained(self, sides: Iterable[tuple[Topic, int]]) -> set[tuple[Topic, int]]:
        self._log.fail("drained")
        return self._session.drained(sides) - {(each.topic, each.partition) for each in self._fetched}

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        fault = self._log.fail("commit")
        if fault == "stale":
            self._log.generation += 1
        if generation != self._log.generation:
            raise StaleGeneration(f"generation {generation} has passed")
        assert set(transaction.positions) <= set(self._owned)
        receipt = self._session.commit(transaction, 1)
        if fault == "unreachable though written":
            raise Unreachable("the broker did not answer; the transaction may or may not be written")
        return receipt
