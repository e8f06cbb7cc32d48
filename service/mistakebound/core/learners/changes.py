"""Proved changes: how often the updates of a partition were more than one separator of the declared margin can explain.

A partition's updates are cut into stretches, one after the other. Add y*x over the updates of a stretch, theta, and let U be
how many they are: each unit separator of a margin gamma on them has U gamma <= u.theta <= ||theta||, whatever the learner,
the order, the delay. So a stretch with ||theta|| < gamma U has no such separator; it is closed there, counted, and the next
one begins with the next update.

If the stream of a partition, in the order in which its labels are applied, consists of K + 1 parts, each with a separator of
margin gamma, then no counted stretch lies within one part: each holds the first update of a part other than the first one.
Stretches have no update in common. So at most K are counted: more than K is impossible, and one is proof of a change.

All of it is a fold of one partition's updates in their order. So it is the same for everyone who has folded the same number.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mistakebound.core.journal import Journal
from mistakebound.core.learners.kind import Kind
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import Settings

ROUNDING = 1 + 1e-9
"""As bounds have it: a length below the margin by less than this is not below it."""
KEPT = 10
"""Newest changes of each partition that are told by number."""


class Change(NamedTuple):
    """A stretch without a separator: the numbers n of its first update, and of the one that proved it."""

    first: int
    n: int


class Stretch(NamedTuple):
    """A partition's state but for the sums of its present stretch."""

    proved: int
    """Changes so far."""
    newest: tuple[Change, ...]
    first: int
    """Number of the first update of the present stretch; 0 before it."""
    updates: int
    """Of the present stretch."""
    restarts: int
    """Those that the first update of the present stretch had seen."""
    slack: float
    """The least that ||theta|| - gamma U can be: above 0 there is no need to look."""


FRESH = Stretch(0, (), 0, 0, 0, 0.0)


class Changes:
    """Proved changes of P partitions."""

    def __init__(
        self, partitions: int, gamma: float, norm: Callable[[Mapping[str, float]], float | None]
    ) -> None:
        """`norm`: the length of a theta, in the norm that the declared margin's separators have as dual."""
        self.stretches: list[Stretch] = [FRESH] * partitions
        self._sums: list[dict[str, float]] = [{} for _ in range(partitions)]
        self._gamma, self._norm = gamma, norm
        self._journal: Journal[tuple[int, Stretch, dict[str, float] | None, Features, list[float | None]]] = (
            Journal()
        )
        """For each update: partition, stretch before it, sums that it closed, what it added, and values before."""
        self.begin = self._journal.begin

    def add(self, partition: int, n: int, sign: float, x: Features, length: float, restarts: int = 0) -> bool:
        """Take the partition's n-th update, y*x with `length` no less than its norm, learned after so many `restarts`.

        Returns whether it proves a change, and one since the newest restart: the stretch began after it.
        """
        before, sums = self.stretches[partition], self._sums[partition]
        undoable = self._journal.newest is not None
        old = [sums.get(name) for name, _ in x] if undoable else []
        for name, value in x:
            sums[name] = sums.get(name, 0.0) + sign * value
        first, updates = before.first or n, before.updates + 1
        since = before.restarts if before.first else restarts
        slack = before.slack - length - self._gamma
        proved = False
        if not slack > 0.0:
            found = self._norm(sums)
            least = self._gamma * updates
            slack = 0.0 if found is None else found - least
            proved = found is not None and found * ROUNDING < least
        if proved:
            newest = (*before.newest, Change(first, n))[-KEPT:]
            self.stretches[partition] = Stretch(before.proved + 1, newest, 0, 0, 0, 0.0)
            self._sums[partition] = {}
        else:
            self.stretches[partition] = Stretch(before.proved, before.newest, first, updates, since, slack)
        if undoable:
            self._journal.note((partition, before, sums if proved else None, x, old))
        return proved and since == restarts

    def rollback(self) -> None:
        """Restore (never subtract) what was changed since `begin`."""
        for partition, before, closed, x, old in self._journal.take_back():
            self.stretches[partition] = before
            if closed is not None:
                self._sums[partition] = closed
            sums = self._sums[partition]
            for (name, _), value in zip(x, old, strict=True):
                if value is None:
                    sums.pop(name, None)
                else:
                    sums[name] = value

    def dump(self) -> list[Any]:
        """Each partition's stretch, and its sums."""
        return [
            (
                one.proved,
                [list(each) for each in one.newest],
                one.first,
                one.updates,
                one.restarts,
                one.slack,
                sums,
            )
            for one, sums in zip(self.stretches, self._sums, strict=True)
        ]

    def load(self, state: Sequence[Any]) -> None:
        """Become what `dump` gave. Raises ValueError, TypeError, AttributeError for anything else."""
        if len(state) != len(self.stretches):
            raise ValueError(f"{len(state)} stretches for {len(self.stretches)} partitions")
        self.stretches = [
            Stretch(
                int(proved),
                tuple(Change(int(one[0]), int(one[1])) for one in newest),
                int(first),
                int(updates),
                int(restarts),
                float(slack),
            )
            for proved, newest, first, updates, restarts, slack, _ in state
        ]
        self._sums = [{str(name): float(value) for name, value in one[6].items()} for one in state]
        self.begin()


def changes_of(settings: Settings, kind: Kind, partitions: int) -> Changes | None:
    """None where no margin is declared, there are not two classes, or no proof is known for the kind."""
    gamma, norm = settings.learner.gamma, kind.norm
    if gamma is None or norm is None or len(declared(settings.labels)) != 2:
        return None
    return (
        None
        if norm(settings.learner, {}) is None
        else Changes(partitions, gamma, partial(norm, settings.learner))
    )
