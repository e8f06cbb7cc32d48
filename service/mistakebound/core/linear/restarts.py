"""Starting from zero once a change is proved: only the updates since the newest restart count.

A restart follows from an update (`core/learners/changes.py`): whoever folds that update restarts, in every row. Workers fold the
partitions in whatever order their updates come, so each update says how many restarts the model that learned it had made. Those
of an older number came too late and never count; those of a newer one wait for the update that caused their restart. So the
rows that count are the same for everyone who has folded the same number of updates of each partition.

Nothing is ever subtracted: the rows of each number of restarts are added up apart, from zero.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mistakebound.core.journal import Journal
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


class Restarts:
    """How many restarts there were, and how many updates of each of the P partitions count."""

    def __init__(self, partitions: int) -> None:
        self.made = 0
        self.into = 0
        """Those that the update which is being folded had seen."""
        self.tell: list[Callable[[], None]] = []
        """Called after each restart: what was added up is to be looked at anew."""
        self._updates: list[dict[int, int]] = [{} for _ in range(partitions)]
        """For each partition, how many updates by the restarts they had seen, the present number and above."""
        self._journal: Journal[tuple[int, list[dict[int, int]]]] = Journal()
        self.begin()

    def folded(self, partition: int) -> None:
        """An update that had seen `into` restarts was folded."""
        if self.into >= self.made:
            known = self._updates[partition]
            known[self.into] = known.get(self.into, 0) + 1

    def restart(self) -> None:
        """One more restart: no update that was folded counts but those that had seen as many."""
        self.made += 1
        self._updates = [
            {seen: count for seen, count in known.items() if seen >= self.made} for known in self._updates
        ]
        for changed in self.tell:
            changed()

    def counting(self) -> list[int]:
        """How many updates of each partition count."""
        return [known.get(self.made, 0) for known in self._updates]

    def begin(self, undoable: bool = True) -> None:
        self._journal.begin(undoable)
        self._journal.note((self.made, [dict(known) for known in self._updates]))

    def rollback(self) -> None:
        ((self.made, self._updates),) = self._journal.take_back()

    def dump(self) -> list[Any]:
        """[how many restarts, for each partition (restarts seen, updates)]."""
        return [self.made, [list(known.items()) for known in self._updates]]

    def load(self, state: Sequence[Any]) -> None:
        made, updates = state
        if len(updates) != len(self._updates):
            raise ValueError(f"{len(updates)} counts for {len(self._updates)} partitions")
        self.made = int(made)
        self._updates = [{int(seen): int(count) for seen, count in known} for known in updates]
        self.begin()


def restarts_of(settings: LearnerSettings, partitions: int) -> Restarts | None:
    """None: it never restarts."""
    return None if settings.on_refuted is None else Restarts(partitions)


class Apart:
    """Rows by the number of restarts that their updates had seen; `rows` are those of the present number.

    Whatever changes rows returns the names that it changed.
    """

    def __init__(self, restarts: Restarts, rows: list[dict[str, float]]) -> None:
        self._restarts, self._rows = restarts, rows
        self.of: list[dict[int, dict[str, float]]] = [{} for _ in rows]
        """For each partition, the row of each number of restarts, from the present one on."""
        self._journal: Journal[tuple[int, int, str | None, Any]] = Journal()
        """(partition, restarts, name, its value before), or (partition, restarts, None, the row left out)."""

    def add(self, partition: int, x: Features, scale: float) -> list[str]:
        """Add scale * x to the row that the update belongs to; an infinite scale leaves zeros alone."""
        seen, made = self._restarts.into, self._restarts.made
        if seen < made:
            return []
        rows = self.of[partition]
        for name, value in x:
            row = rows.setdefault(seen, {})  # no name, no row
            old = row.get(name)
            self._journal.note((partition, seen, name, old))
            row[name] = (0.0 if old is None else old) + (0.0 if value == 0.0 else scale * value)
        if seen > made:
            return []
        names = [name for name, _ in x]
        if names:
            shown = rows[seen]
            self._rows[partition].update((name, shown[name]) for name in names)
        return names

    def restart(self) -> list[str]:
        """A restart was counted: show the rows of the present number, and forget older ones."""
        changed: list[str] = []
        for partition, rows in enumerate(self.of):
            for seen in [seen for seen in rows if seen < self._restarts.made]:
                self._journal.note((partition, seen, None, rows.pop(seen)))
            changed += self._show(partition)
        return changed

    def _show(self, partition: int) -> list[str]:
        row = self._rows[partition]
        shown = self.of[partition].get(self._restarts.made, {})
        names = list(dict.fromkeys([*row, *shown]))
        row.clear()
        row.update(shown)
        return names

    def begin(self, undoable: bool = True) -> None:
        self._journal.begin(undoable)

    def rollback(self) -> list[str]:
        """Restore (never subtract) the rows as they were at `begin`; the restarts are rolled back before."""
        for partition, seen, name, old in self._journal.take_back():
            rows = self.of[partition]
            if name is None:
                rows[seen] = old
            elif old is not None:
                rows[seen][name] = old
            else:
                del rows[seen][name]
                if not rows[seen]:
                    del rows[seen]
        return [name for partition in range(len(self.of)) for name in self._show(partition)]

    def dump(self) -> list[list[tuple[int, dict[str, float]]]]:
        """(restarts seen, row) for each partition, in order."""
        return [sorted(rows.items()) for rows in self.of]

    def load(self, partitions: Iterable[Any]) -> list[dict[str, float]]:
        """Become what `dump` gave, after the restarts have; returns the rows that count. Raises ValueError, TypeError,
        AttributeError for anything else."""
        loaded = [
            {int(seen): {str(name): float(value) for name, value in row.items()} for seen, row in rows}
            for rows in partitions
        ]
        if len(loaded) != len(self.of):
            raise ValueError(f"{len(loaded)} lists of rows for {len(self.of)} partitions")
        self.of = loaded
        return [dict(rows.get(self._restarts.made, {})) for rows in loaded]
