"""Forgetting on purpose: only the last `window` updates of each partition count, in whole blocks.

A partition's updates are cut into blocks of B = window // 10 (at least 1), counted from the first that was
folded into the partition's rows, those of an epoch that this one is based on included. When one more would
make more than `window` of them, the oldest block is left out whole: so `window` - B + 1 to `window` of them
count once there were that many. Which blocks count depends on the number of updates alone.

Each block is folded from zero, and a row is the sum of its blocks, oldest first. Nothing is ever subtracted:
that would round differently, and leave NaN where an infinity was. So everyone who has folded the same number
of updates, in whatever batches, after whatever rollbacks, holds the same bits.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from mistakebound.core.journal import Journal
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

BLOCKS = 10
"""Blocks of a full window, about: more would cost memory, fewer would forget in jumps."""


class Window:
    """How many updates of each of the P partitions were folded, and which of them count."""

    def __init__(self, partitions: int, size: int) -> None:
        self.size = size
        self.block = max(1, size // BLOCKS)
        """Updates of a block."""
        self.folded = [0] * partitions
        self._journal: Journal[list[int]] = Journal()
        self.begin()

    def newest(self, partition: int) -> int:
        """Number of the block that the newest update is in; the first is 0."""
        return (self.folded[partition] - 1) // self.block

    def oldest(self, partition: int) -> int:
        """Number of the oldest block that counts."""
        return -(-max(0, self.folded[partition] - self.size) // self.block)

    def counting(self) -> list[int]:
        """How many updates of each partition count."""
        return [folded - self.oldest(p) * self.block for p, folded in enumerate(self.folded)]

    @property
    def forgot(self) -> bool:
        """Whether some update no longer counts."""
        return any(self.oldest(p) for p in range(len(self.folded)))

    def advance(self, partition: int) -> int:
        """One more update is to be folded; returns the oldest block that counts where older ones no longer do, else 0."""
        before = self.oldest(partition)
        self.folded[partition] += 1
        oldest = self.oldest(partition)
        return oldest if oldest > before else 0

    def begin(self, undoable: bool = True) -> None:
        self._journal.begin(undoable)
        self._journal.note(list(self.folded))

    def rollback(self) -> None:
        (self.folded,) = self._journal.take_back()

    def dump(self) -> list[int]:
        """How many updates of each partition were folded."""
        return self.folded

    def load(self, folded: Sequence[int]) -> None:
        if len(folded) != len(self.folded):
            raise ValueError(f"{len(folded)} counts for {len(self.folded)} partitions")
        self.folded = [int(count) for count in folded]
        self.begin()


def window_of(settings: LearnerSettings, partitions: int) -> Window | None:
    """None: all updates count."""
    return None if settings.window is None else Window(partitions, settings.window)


class Blocks:
    """The blocks that a window counts, and rows that are kept as their sums. The window is advanced before each update.

    Whatever changes rows returns the names that it changed.
    """

    def __init__(self, window: Window, rows: list[dict[str, float]]) -> None:
        self._window, self._rows = window, rows
        self.of: list[dict[int, dict[str, float]]] = [{} for _ in rows]
        """For each partition, the row of each block by number, oldest first; a block without names is left out."""
        self._journal: Journal[tuple[int, int, str | None, Any]] = Journal()
        """(partition, block, name, its value before), or (partition, block, None, the block left out)."""

    def add(self, partition: int, x: Features, scale: float) -> list[str]:
        """Add scale * x to the newest block of the partition; an infinite scale leaves zeros alone."""
        number, blocks = self._window.newest(partition), self.of[partition]
        for name, value in x:
            block = blocks.setdefault(number, {})
            old = block.get(name)
            self._journal.note((partition, number, name, old))
            block[name] = (0.0 if old is None else old) + (0.0 if value == 0.0 else scale * value)
        return self._sum(partition, [name for name, _ in x], self._rows[partition])

    def leave_out(self, partition: int, oldest: int) -> list[str]:
        """Forget the blocks before this number."""
        blocks, changed = self.of[partition], list[str]()
        for number in [number for number in blocks if number < oldest]:
            block = blocks.pop(number)
            self._journal.note((partition, number, None, block))
            changed += block
        return self._sum(partition, changed, self._rows[partition])

    def _sum(self, partition: int, names: list[str], row: dict[str, float]) -> list[str]:
        """Set the names in the row to what the partition's blocks add up to."""
        blocks = self.of[partition].values()
        for name in names:
            total, known = 0.0, False
            for block in blocks:
                value = block.get(name)
                if value is not None:
                    total, known = total + value, True
            if known:
                row[name] = total
            else:
                row.pop(name, None)
        return names

    def begin(self, undoable: bool = True) -> None:
        self._journal.begin(undoable)

    def rollback(self) -> list[str]:
        """Restore (never subtract) the blocks as they were at `begin`."""
        touched: dict[int, dict[str, None]] = {}
        for partition, number, name, old in self._journal.take_back():
            blocks, names = self.of[partition], touched.setdefault(partition, {})
            if name is None:
                blocks[number] = old
                names.update(dict.fromkeys(old))
                continue
            names[name] = None
            if old is not None:
                blocks[number][name] = old
                continue
            del blocks[number][name]
            if not blocks[number]:
                del blocks[number]
        changed: list[str] = []
        for partition, names in touched.items():
            self.of[partition] = dict(sorted(self.of[partition].items()))
            changed += self._sum(partition, list(names), self._rows[partition])
        return changed

    def dump(self) -> list[list[tuple[int, dict[str, float]]]]:
        """(number, row) for each block of each partition, oldest first."""
        return [list(blocks.items()) for blocks in self.of]

    def load(self, partitions: Iterable[Any]) -> list[dict[str, float]]:
        """Become what `dump` gave; returns new rows. Raises ValueError, TypeError, AttributeError for anything else."""
        loaded = [
            {int(number): {str(name): float(value) for name, value in row.items()} for number, row in blocks}
            for blocks in partitions
        ]
        if len(loaded) != len(self.of):
            raise ValueError(f"{len(loaded)} lists of blocks for {len(self.of)} partitions")
        self.of = loaded
        rows: list[dict[str, float]] = [{} for _ in loaded]
        for partition, row in enumerate(rows):
            names = dict.fromkeys(name for block in loaded[partition].values() for name in block)
            self._sum(partition, list(names), row)
        return rows
