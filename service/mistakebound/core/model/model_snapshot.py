"""A model as data: its rows and its version, for a checkpoint."""

from typing import Any

from msgspec import Struct


class Snapshot(Struct, frozen=True):
    """A model's rows, names and version."""

    epoch: int
    updates: list[int]
    clock: list[int]
    state: Any
    """What the learner's `dump` gave."""
    radius: float
    """Largest length of an example updated on, in the learner's space."""
    decided: int
    needed: list[int]
    recent: Any
    """As in `Model`."""
    changes: Any = None
    """What its `dump` gave; None where nothing is counted, and in earlier checkpoints."""
