"""A map by id that is used first-in first-out, from whose middle anything may leave, and whose last two steps can be
taken back.

A plain dict passes over all that has left to find its first entry; an OrderedDict takes 40 bytes an entry more.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from mistakebound.core.journal import Journal
from mistakebound.core.ledger.entries import Parked, Remembered, Waiting

Entry = TypeVar("Entry", Waiting, Parked, Remembered)

FEW = 1_000
"""So many ids of entries that have left are no reason yet to look through all."""


class OrderedMap(Generic[Entry]):
    """Entries in the order in which they were put, each by its id."""

    def __init__(self, number: Callable[[Entry], int]) -> None:
        """`number`: grows from each entry to the next; by it they are in order again when a step is taken back."""
        self.entries: dict[str, Entry] = {}
        """In their order; only to be read. To find the first one, ask `oldest`."""
        self._number: Callable[[Any], int] = number
        self._order: deque[str] = deque()
        """Ids in the order put; some may have left, and an id that came again is there again."""
        self._left: dict[str, int] = {}
        """How often an id is there, from the left, without its entry."""
        self._journal: Journal[str | Entry] = Journal()
        """An entry that was there, or the id of one that was not."""

    def put(self, entry: Entry) -> None:
        """It is the newest, or takes the place of one of its id."""
        record_id, entries, newest = entry.id, self.entries, self._journal.newest
        before = entries.get(record_id)
        if before is None:
            self._order.append(record_id)
        entries[record_id] = entry
        if newest is not None:
            newest.append(record_id if before is None else before)

    def pop(self, record_id: str) -> Entry:
        """Raises KeyError where there is none."""
        entry, left, newest = self.entries.pop(record_id), self._left, self._journal.newest
        if newest is not None:
            newest.append(entry)
        if self._order[0] == record_id and record_id not in left:
            self._order.popleft()
            return entry
        left[record_id] = left.get(record_id, 0) + 1
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

    def hold(self, entries: Iterable[Entry]) -> None:
        """Hold exactly these, in this order."""
        held = list(entries)
        self.entries.clear()
        for entry in held:
            self.entries[entry.id] = entry
        self._look_through()

    def begin(self) -> None:
        """A step begins; the last but one can no more be taken back."""
        self._journal.begin()

    def rollback(self) -> None:
        """Everything is as it was at `begin`; a second time, as at the one before."""
        changes = list(self._journal.take_back())
        if not changes:
            return
        entries = dict(self.entries)
        for before in changes:
            if isinstance(before, str):
                entries.pop(before, None)
            else:
                entries[before.id] = before
        self.hold(sorted(entries.values(), key=self._number))

    def _look_through(self) -> None:
        self._order, self._left = deque(self.entries), {}
