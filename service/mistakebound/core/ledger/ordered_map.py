"""A first-in first-out map by id: entries may leave from its middle, and its last two steps can be taken back.

To find its first entry a plain dict passes over all that have left; an OrderedDict takes 40 bytes more for each entry.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from mistakebound.core.journal import Journal
from mistakebound.core.ledger.entries import Parked, Remembered, Waiting

Entry = TypeVar("Entry", Waiting, Parked, Remembered)

FEW = 1_000
"""Up to this many ids of entries that have left, the queue is not cleaned."""


class OrderedMap(Generic[Entry]):
    """Entries by id, in the order in which they were put."""

    def __init__(self, number: Callable[[Entry], int]) -> None:
        """`number`: grows from each entry to the next; it restores the order when a step is taken back."""
        self.entries: dict[str, Entry] = {}
        """In their order; read only. `oldest` finds the first one faster."""
        self._number: Callable[[Any], int] = number
        self._order: deque[str] = deque()
        """Ids in the order put: some of entries that have left, and one that came again stands there twice."""
        self._left: dict[str, int] = {}
        """Id -> how many of its places in `_order`, counted from the front, have no entry any more."""
        self._journal: Journal[str | Entry] = Journal()
        """What each change replaced: an entry, or the id alone where there was none."""

    def put(self, entry: Entry) -> None:
        """Add as the newest, or in place of the entry with the same id."""
        # Here and in `pop` the journal's `note` is written out: 0.02 us less of 0.1, four times an example (interpreted).
        record_id, entries, newest = entry.id, self.entries, self._journal.newest
        before = entries.get(record_id)
        if before is None:
            self._order.append(record_id)
        entries[record_id] = entry
        if newest is not None:
            newest.append(record_id if before is None else before)

    def pop(self, record_id: str) -> Entry:
        """Remove an entry. Raises KeyError where there is none."""
        entry, left, newest = self.entries.pop(record_id), self._left, self._journal.newest
        if newest is not None:
            newest.append(entry)
        if self._order[0] == record_id and record_id not in left:
            self._order.popleft()
            return entry
        left[record_id] = left.get(record_id, 0) + 1
        if len(left) > FEW + len(self.entries) // 4:
            self._clean()
        return entry

    def oldest(self) -> Entry | None:
        """The entry that was put first."""
        order, left = self._order, self._left
        while left and order and (times := left.get(order[0], 0)):
            if times == 1:
                del left[order.popleft()]
            else:
                left[order.popleft()] = times - 1
        return self.entries[order[0]] if order else None

    def hold(self, entries: Iterable[Entry]) -> None:
        """Hold exactly these, in this order."""
        held = {entry.id: entry for entry in entries}
        self.entries.clear()
        self.entries.update(held)
        self._clean()

    def begin(self) -> None:
        """A step begins; only this and the one before it can be taken back."""
        self._journal.begin()

    def rollback(self) -> None:
        """Restore everything as it was at `begin`; called a second time, as at the one before."""
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

    def _clean(self) -> None:
        """Drop the ids of entries that have left."""
        self._order, self._left = deque(self.entries), {}
