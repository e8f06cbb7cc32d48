"""What the last two steps changed: the second is made while the first is being committed."""

from collections.abc import Iterator
from typing import Generic, TypeVar

Change = TypeVar("Change")


class Journal(Generic[Change]):
    """Changes of the newest step, in order, and of the one before it."""

    __slots__ = ("_earlier", "newest")

    def __init__(self) -> None:
        self.newest: list[Change] | None = []
        """Changes of the step that is being made; None where it cannot be taken back."""
        self._earlier: list[Change] | None = None

    def begin(self, undoable: bool = True) -> None:
        """A step begins. It can be taken back if `undoable`, and so can the one before it, but none earlier."""
        self._earlier, self.newest = self.newest, [] if undoable else None

    def note(self, change: Change) -> None:
        """Keep a change of the present step."""
        if self.newest is not None:
            self.newest.append(change)

    def take_back(self) -> Iterator[Change]:
        """The newest step's changes, newest first; the step before it becomes the newest."""
        newest = self.newest
        assert newest is not None, "no step that can be taken back"
        self.newest, self._earlier = self._earlier, None
        return reversed(newest)
