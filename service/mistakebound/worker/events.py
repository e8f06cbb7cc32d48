"""What happens in the loop, as plain data, and the observers that are shown it.

The loop and its steps report each event once, from the loop's own thread, and do not know who looks. There
are a few events for each poll and each step, never one for a record. An observer changes nothing of what it
is shown and keeps no reference to `held`, which the next step changes; what it raises ends the work.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from mistakebound.core.records import Stream
from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.worker.assignment import WorkerState

Phase = Literal["starting", "restoring", "running", "draining"]
PHASES: tuple[Phase, ...] = get_args(Phase)
TransactionResult = Literal["committed", "stale", "fenced", "failed"]
"""As the log protocol's errors: StaleGeneration, Fenced, anything else that gave the transaction up."""
RebuildReason = Literal["stale", "fenced", "failed", "unreachable"]


class PhaseEntered(NamedTuple):
    """The worker does something else from now on."""

    phase: Phase


class PollReturned(NamedTuple):
    """The group was polled: the loop is alive."""

    at_s: float
    """Unix time."""


class Assigned(NamedTuple):
    """These partitions are owned from now on, and no others; all that they need is held."""

    epoch: int
    totals: Mapping[int, PartitionTotals]
    """Of each partition."""


class Revoked(NamedTuple):
    """These partitions moved away: their new owners may report them from now on."""

    partitions: Sequence[int]


class TransactionOpened(NamedTuple):
    """A step is on its way to the log."""


class TransactionEnded(NamedTuple):
    """The open transaction ended."""

    result: TransactionResult
    duration_s: float


class StepCommitted(NamedTuple):
    """A step's transaction is committed. Nothing observes a step before that."""

    facts: StepFacts
    totals: Mapping[int, PartitionTotals]
    """Of each partition that the step touched."""
    duration_s: float
    """From the step's beginning to its commit's end."""
    at_s: float
    """Unix time."""


class Settled(NamedTuple):
    """No step is under way: all that is held is committed."""

    held: WorkerState
    steps: int
    """How many were committed since the last such moment."""


class LagMeasured(NamedTuple):
    """Records that wait on each input of the owned partitions, and other workers' updates not folded yet."""

    records: Mapping[tuple[Stream, int], int]
    followed: int


class Rebuilding(NamedTuple):
    """What a step changed is of no use; it was taken back, or all is rebuilt from the log."""

    reason: RebuildReason


class StateDropped(NamedTuple):
    """Nothing is held any more, until the next assignment."""


class LogUnreachable(NamedTuple):
    """The log does not answer. The worker waits for it, until the next assignment."""


Event = (
    PhaseEntered
    | PollReturned
    | Assigned
    | Revoked
    | TransactionOpened
    | TransactionEnded
    | StepCommitted
    | Settled
    | LagMeasured
    | Rebuilding
    | StateDropped
    | LogUnreachable
)


class Observer(Protocol):
    """Is shown every event, and reacts to those that concern it."""

    def observe(self, event: Event) -> None:
        """Called in the loop's thread, which waits meanwhile."""


class Observers:
    """Several observers as one; each event goes to all, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def observe(self, event: Event) -> None:
        for each in self._observers:
            each.observe(event)


class CommitHook:
    """Calls a function with what is held whenever steps were committed, and all of it is."""

    def __init__(self, call: Callable[[WorkerState], None]) -> None:
        self._call = call

    def observe(self, event: Event) -> None:
        match event:
            case Settled(held=held, steps=steps) if steps > 0:
                self._call(held)
