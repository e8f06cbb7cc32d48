"""Hypotheses that are the list of their mistakes: kept in log order per partition, with a budget."""

from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import pack
from typing import Any

from mistakebound.core.journal import Journal
from mistakebound.core.messages.features import Features
from mistakebound.core.records import Data


class Mistake(Data, frozen=True, gc=False):
    """An update: y = +1 or -1, k named values, and the clock at which it was made."""

    sign: float
    x: Features
    clock: int


class Mistakes:
    """Rows [P] of mistakes. Beyond `budget` in a partition the oldest of it goes, and is returned."""

    def __init__(self, partitions: int, budget: int | None) -> None:
        self.rows: list[deque[Mistake]] = [deque() for _ in range(partitions)]
        self._budget = budget
        self._journal: Journal[tuple[int, Mistake | None]] = Journal()
        self.begin = self._journal.begin

    def add(self, partition: int, mistake: Mistake) -> Mistake | None:
        row = self.rows[partition]
        row.append(mistake)
        gone = row.popleft() if self._budget is not None and len(row) > self._budget else None
        self._journal.note((partition, gone))
        return gone

    def __iter__(self) -> Iterator[Mistake]:
        """All of them, partition by partition, in log order."""
        for row in self.rows:
            yield from row

    def __len__(self) -> int:
        return sum(map(len, self.rows))

    def rollback(self) -> None:
        for partition, gone in self._journal.take_back():
            if gone is not None:
                self.rows[partition].appendleft(gone)
            self.rows[partition].pop()

    def dump(self) -> list[list[tuple[float, int, list[tuple[str, float]]]]]:
        """(sign, clock, values) for each mistake of each partition."""
        return [[(one.sign, one.clock, list(one.x)) for one in row] for row in self.rows]

    def load(self, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) != len(self.rows):
            raise ValueError(f"{len(rows)} rows for {len(self.rows)} partitions")
        self.rows = [
            deque(
                Mistake(float(sign), tuple((str(name), float(value)) for name, value in x), int(clock))
                for sign, clock, x in row
            )
            for row in rows
        ]
        self.begin()

    def digest(self) -> str:
        """SHA-256 over the mistakes: sign, then name, zero byte and float64 for each value."""
        seal = sha256()
        for one in self:
            seal.update(pack("<dq", one.sign, len(one.x)))
            for name, value in one.x:
                seal.update(name.encode() + b"\0" + pack("<d", value))
        return seal.hexdigest()
