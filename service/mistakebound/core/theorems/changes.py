"""What the updates prove of how often the stream has changed, if separators have the margin that is declared."""

from dataclasses import dataclass

from mistakebound.core.model.model import Model


@dataclass(frozen=True, slots=True)
class ProvedChange:
    """A stretch of a partition's updates that no separator of the declared margin fits."""

    partition: int
    first: int
    """Number n of its first update in the epoch."""
    update: int
    """Number n of the update that proved it: the last of the stretch."""


@dataclass(frozen=True, slots=True)
class ProvedChanges:
    """How often the stream must have changed in this epoch."""

    count: int
    """At least so often: the most that one partition proves. What two partitions prove may be the same change."""
    by_partition: tuple[int, ...]
    newest: tuple[ProvedChange, ...]
    """The newest of each partition, at most ten, oldest first."""
    restarts: int | None = None
    """How often the model has started from zero for it; None where it never does."""


def proved_changes(model: Model) -> ProvedChanges | None:
    """None where no margin is declared, or where no proof is known: kernels, more classes than two, set learners,
    passive-aggressive ones, and Winnow with a number other than 0 as threshold."""
    if model.changes is None:
        return None
    counts = tuple(one.proved for one in model.changes.stretches)
    newest = tuple(
        ProvedChange(partition, change.first, change.n)
        for partition, one in enumerate(model.changes.stretches)
        for change in one.newest
    )
    restarts = None if model.learner.restarts is None else model.restarts
    return ProvedChanges(max(counts), counts, newest, restarts)
