"""A map by id that is used first-in first-out, and from whose middle anything may leave.

A plain dict passes over all that has left to find its first entry; an OrderedDict takes 40 bytes an entry more.
"""

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")

FEW = 1_000
"""So many ids of entries that have left are no reason yet to look through all."""


class Fifo(Generic[Entry]):
    """Entries in the order in which they were put, each by its id."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        """In their order; only to be read. To find the first one, ask `oldest`."""
        self._order: deque[str] = deque()
        """Ids in the order put; some may have left, and an id that came again is there again."""
        self._left: dict[str, int] = {}
        """How often an id is there, from the left, without its entry."""

    def put(self, identity: str, entry: Entry) -> None:
        """It is the newest, or takes the place of one of its id."""
        if identity not in self.entries:
            self._order.append(identity)
        self.entries[identity] = entry

    def pop(self, identity: str) -> Entry:
        """Raises KeyError where there is none."""
        entry, left = self.entries.pop(identity), self._left
        if self._order[0] == identity and identity not in left:
            self._order.popleft()
            return entry
        left[identity] = left.get(identity, 0) + 1
        if len(left) > FEW + len(self.entries) // 4:
            self._look_through()
        return entry

    def oldest(self) -> Entry | None:
        """The one that was put first."""
        order, left = self._order, self._left
        while left and order and (times := left.get(order[0], 0)):
            if times == 1:
                del left[order.popleft()]
            else:
                left[order.popleft()] = times - 1
        return self.entries[order[0]] if order else None

    def hold(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Hold exactly these, in this order."""
        held = list(entries)
        self.entries.clear()
        for identity, entry in held:
            self.entries[identity] = entry
        self._look_through()

    def _look_through(self) -> None:
        self._order, self._left = deque(self.entries), {}
