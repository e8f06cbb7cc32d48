"""What one step did, as plain counts and numbers: data for metrics and progress tables.

Nothing here decides, and nothing here is needed to decide again: the log alone is the truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mistakebound.core.messages.tallies import ExampleOutcome, LabelOutcome
from mistakebound.core.records import Stream
from mistakebound.core.step.explained import ExplainedMistake

Direction = Literal["promote", "demote"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """Counts of one step, whole; keys that did not occur may be missing. Classes as `spelled` gives them.

    Facts of a step whose transaction was given up are dropped with it.
    """

    consumed: Mapping[Stream, int] = field(default_factory=dict)
    rejected: Mapping[tuple[Stream, str], int] = field(default_factory=dict)
    """(stream, reason) -> dead letters; reasons are those of `mistakebound.core.faults`."""
    predicted: Mapping[str, int] = field(default_factory=dict)
    """Predicted class -> predictions."""
    evaluations: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(actual, predicted) -> published predictions judged by their label."""
    mistakes: Mapping[str, int] = field(default_factory=dict)
    """Actual class -> published predictions that differed."""
    baseline_mistakes: int = 0
    """Judged examples on which always-the-majority-so-far would have erred."""
    updates: Mapping[Direction, int] = field(default_factory=dict)
    labels: Mapping[LabelOutcome, int] = field(default_factory=dict)
    examples: Mapping[ExampleOutcome, int] = field(default_factory=dict)
    label_delays_seconds: Sequence[float] = ()
    """For each label that found its example waiting: its record time less the stream time when that was
    predicted; 0 where producers' clocks say that it came before."""
    margins: Sequence[float] = ()
    """For each prediction: the distance of its score from the decision threshold, not negative."""
    predicted_record_ms: Sequence[int] = ()
    """For each prediction: its example's record time; without those that have none."""
    newest_record_ms: Mapping[Stream, int] = field(default_factory=dict)
    """Largest record time consumed; a stream whose records have none is missing."""
    explained_mistakes: Sequence[ExplainedMistake] = ()
    """The first few mistakes of each partition, oldest first, where the step was asked to explain any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTotals:
    """One partition's durable totals, for life, as its newest `outcomes` record has them."""

    examples: int
    """Examples predicted."""
    labelled: int
    mistakes: int
    baseline_mistakes: int
    updates: int
    """Of the current epoch, as n counts them."""
    waiting: int
    parked: int
    oldest_waiting_ms: int | None = None
    """Stream time at which the oldest waiting example was predicted; None when none waits."""
