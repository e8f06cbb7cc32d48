"""What happens in the loop, as plain data, and the observers that are shown it.

The loop and its steps report each event once, from the loop's own thread, and do not know the observers.
There are a few events for each poll and each step, never one for a record. An observer changes nothing in
an event and keeps no reference to `held`, which the next step changes; an error it raises ends the work.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from mistakebound.core.records import Stream
from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.worker.takeover import WorkerState

Phase = Literal["starting", "restoring", "running", "draining"]
PHASES: tuple[Phase, ...] = get_args(Phase)
TransactionResult = Literal["committed", "stale", "fenced", "failed"]
"""After the log protocol's errors: StaleGeneration, Fenced, and for `failed` any other."""
RebuildReason = Literal["stale", "fenced", "failed", "unreachable"]


class PhaseEntered(NamedTuple):
    """The worker entered another phase."""

    phase: Phase


class PollReturned(NamedTuple):
    """The group was polled: the loop is alive."""

    at_s: float
    """Unix time."""


class Assigned(NamedTuple):
    """Exactly these partitions are owned from now on, and their state is in memory."""

    epoch: int
    totals: Mapping[int, PartitionTotals]
    """By partition."""


class Revoked(NamedTuple):
    """These partitions moved away; their new owners may report them from now on."""

    partitions: Sequence[int]


class TransactionOpened(NamedTuple):
    """The commit of a step began."""


class TransactionEnded(NamedTuple):
    """The open transaction ended."""

    result: TransactionResult
    duration_s: float


class StepCommitted(NamedTuple):
    """A step's transaction is committed. Nothing observes a step before that."""

    facts: StepFacts
    totals: Mapping[int, PartitionTotals]
    """By partition, for those that the step touched."""
    duration_s: float
    """From the beginning of the step to the end of its commit."""
    at_s: float
    """Unix time."""


class Settled(NamedTuple):
    """No step is under way: everything in `held` is committed."""

    held: WorkerState
    steps: int
    """Steps committed since the previous `Settled`."""


class LagMeasured(NamedTuple):
    """Records waiting on each input of the owned partitions, and other workers' updates not folded yet.

    Offsets between them that transaction markers or aborted records take may be counted along; behind the last
    record none is."""

    records: Mapping[tuple[Stream, int], int]
    followed: int


class LabelsMisplaced(NamedTuple):
    """So many labels are known that lie in other partitions than their examples; 0: none any more."""

    labels: int


class RegistryAnswers(NamedTuple):
    """Whether the schema registry does, and has answered all; while it has not, no step is made that needs it."""

    answers: bool


class Rebuilding(NamedTuple):
    """A step failed: it was taken back, or everything is rebuilt from the log."""

    reason: RebuildReason


class StateDropped(NamedTuple):
    """Nothing is held until the next assignment."""


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
    | LabelsMisplaced
    | Rebuilding
    | StateDropped
    | LogUnreachable
    | RegistryAnswers
)

Observe = Callable[[Event], None]
"""Sees every event, in the loop's thread, which waits meanwhile."""


def show_all(*observers: Observe) -> Observe:
    """One observer for several: each event goes to all, in their order."""

    def observe(event: Event) -> None:
        for each in observers:
            each(event)

    return observe


def after_commits(call: Callable[[WorkerState], None]) -> Observe:
    """Calls a function with the worker's state each time steps were committed and no other is under way."""

    def observe(event: Event) -> None:
        if isinstance(event, Settled) and event.steps > 0:
            call(event.held)

    return observe
