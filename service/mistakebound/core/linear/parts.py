"""A learner's state: named parts that begin a step, roll it back, are dumped and loaded together.

A learner adopts these four functions as its own, so each of them is written once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Part(Protocol):
    """What a step can change, and a checkpoint holds."""

    def begin(self, undoable: bool = True) -> None:
        """A step begins. Only what an `undoable` one changes can be rolled back; any other keeps no record of it."""

    def rollback(self) -> None:
        """Undo what was changed since `begin`, to the bit."""

    def dump(self) -> Any:
        """The whole state, as MessagePack can hold it."""

    def load(self, state: Any, /) -> None:
        """Become what `dump` gave. Raises ValueError, TypeError, KeyError ... for anything else."""


class Parts:
    """The parts by their names in a checkpoint; None for a part that the settings leave out."""

    def __init__(self, parts: Mapping[str, Part | None], restored: Callable[[], None] | None = None) -> None:
        """`restored` is called after a rollback or a load: what was derived from the parts is stale."""
        self._parts = {name: part for name, part in parts.items() if part is not None}
        self._restored = restored

    def begin(self, undoable: bool = True) -> None:
        for part in self._parts.values():
            part.begin(undoable)

    def rollback(self) -> None:
        for part in self._parts.values():
            part.rollback()
        if self._restored is not None:
            self._restored()

    def dump(self) -> dict[str, Any]:
        """Every part's state by name."""
        return {name: part.dump() for name, part in self._parts.items()}

    def load(self, state: Any) -> None:
        """Become what `dump` gave. Raises what its parts do, and KeyError."""
        for name, part in self._parts.items():
            part.load(state[name])
        if self._restored is not None:
            self._restored()
