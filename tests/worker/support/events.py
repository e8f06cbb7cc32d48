"""What a loop reports, in short."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mistakebound.core.messages.asking import Asked
from mistakebound.core.messages.reliability import Reliability
from mistakebound.core.model.fold import Fold
from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.core.step.state import State
from mistakebound.worker.events import Assigned, LagMeasured, Settled, StepCommitted
from mistakebound.worker.takeover import WorkerState

NOTHING = PartitionTotals(
    examples=0, labelled=0, mistakes=0, baseline_mistakes=0, updates=0, waiting=0, parked=0
)


def assigned(partitions: Iterable[int]) -> Assigned:
    """Of epoch 1, in which nothing has happened."""
    return Assigned(1, dict.fromkeys(partitions, NOTHING))


def committed(
    facts: StepFacts | None = None, totals: Mapping[int, PartitionTotals] | None = None, at_s: float = 10.0
) -> StepCommitted:
    """A step that took a millisecond."""
    return StepCommitted(StepFacts() if facts is None else facts, totals or {}, 0.001, at_s)


def asked(counts: Mapping[int, Asked]) -> StepCommitted:
    """A step of partitions with these counts of labels asked for."""
    return committed(totals={p: replace(NOTHING, asked=one) for p, one in counts.items()})


def probable(counts: Mapping[int, Reliability]) -> StepCommitted:
    """A step of partitions with these counts of probabilities."""
    return committed(totals={p: replace(NOTHING, reliability=one) for p, one in counts.items()})


def progressed(*partitions: int) -> StepCommitted:
    """A step that touched these."""
    return committed(totals=dict.fromkeys(partitions, NOTHING))


def waiting(records: Mapping[int, int]) -> LagMeasured:
    """So many records on both inputs of each partition."""
    both = {("examples", p): count - count // 2 for p, count in records.items()}
    return LagMeasured({**both, **{("labels", p): count // 2 for p, count in records.items()}}, 0)


def settled(state: State, fold: Fold) -> Settled:
    """All of it is committed."""
    return Settled(WorkerState(state, fold), 0)
