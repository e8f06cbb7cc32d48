"""What the last two steps changed: the second of them is made while the first one is being committed."""

from collections.abc import Iterator
from typing import Generic, TypeVar

Change = TypeVar("Change")


class Journal(Generic[Change]):
    """Changes of the newest step, in order, and of the one before it."""

    __slots__ = ("_earlier", "newest")

    def __init__(self) -> None:
        self.newest: list[Change] | None = []
        """Of the step that is being made. None: it is not kept."""
        self._earlier: list[Change] | None = None

    def begin(self, undoable: bool = True) -> None:
        """A step begins; the last but one can no more be taken back, nor can this one unless it is `undoable`."""
        self._earlier, self.newest = self.newest, [] if undoable else None

    def note(self, change: Change) -> None:
        """The step changes something."""
        if self.newest is not None:
            self.newest.append(change)

    def take_back(self) -> Iterator[Change]:
        """The newest step's changes, newest first; from now on the step before it is the newest."""
        newest = self.newest
        assert newest is not None, "no step that can be taken back"
        self.newest, self._earlier = self._earlier, None
        return reversed(newest)
