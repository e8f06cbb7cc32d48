"""What one step did, as plain counts and numbers: data for metrics and progress tables.

No decision depends on them, and none is ever made again from them: the log alone is the truth.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from mistakebound.core.messages.asking import Asked
from mistakebound.core.messages.reliability import Reliability
from mistakebound.core.messages.tallies import ExampleOutcome, LabelOutcome
from mistakebound.core.messages.tenants import TenantCounts
from mistakebound.core.records import Stream
from mistakebound.core.step.explain import ExplainedMistake

Direction = Literal["promote", "demote"]

_zeros: Any = partial(defaultdict, int)


@dataclass(slots=True, kw_only=True)
class StepFacts:
    """Counts of one step, filled in while it runs; keys that did not occur may be missing. Classes as `spelled` gives them.

    Facts of a step whose transaction was given up are dropped with it.
    """

    consumed: dict[Stream, int] = field(default_factory=_zeros)
    rejected: dict[tuple[Stream, str], int] = field(default_factory=_zeros)
    """(stream, reason) -> dead letters; reasons are those of `mistakebound.core.faults`."""
    lost: dict[Stream, int] = field(default_factory=_zeros)
    """Offsets of input that was deleted or damaged before it was read, and passed on demand."""
    asked: dict[bool, int] = field(default_factory=_zeros)
    """Whether the label was asked for -> predictions, while labels are asked for."""
    predicted: dict[str, int] = field(default_factory=_zeros)
    """Predicted class -> predictions."""
    evaluations: dict[tuple[str, str], int] = field(default_factory=_zeros)
    """(actual, predicted) -> published predictions judged by their label."""
    mistakes: dict[str, int] = field(default_factory=_zeros)
    """Actual class -> published predictions that differed."""
    baseline_mistakes: int = 0
    """Judged examples on which always-the-majority-so-far would have erred."""
    updates: dict[Direction, int] = field(default_factory=_zeros)
    labels: dict[LabelOutcome, int] = field(default_factory=_zeros)
    examples: dict[ExampleOutcome, int] = field(default_factory=_zeros)
    label_delays_seconds: list[float] = field(default_factory=list)
    """For each label that found its example waiting: the label's record time less the stream time when the example was
    predicted; 0 where the producers' clocks put the label first."""
    margins: list[float] = field(default_factory=list)
    """For each prediction: how far its score is from the decision threshold, never negative."""
    predicted_record_ms: list[int] = field(default_factory=list)
    """For each prediction: its example's record time; examples without one are left out."""
    newest_record_ms: dict[Stream, int] = field(default_factory=dict)
    """Largest record time consumed; a stream whose records have none is missing."""
    explained_mistakes: list[ExplainedMistake] = field(default_factory=list)
    """The first few mistakes of each partition, oldest first, where the step was asked to explain any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionTotals:
    """One partition's judged predictions by (actual, predicted), for life. Classes as `spelled` gives them; none is `none`."""

    compared: int = 0
    """How many were counted so."""
    mistakes: Mapping[str, int] = field(default_factory=dict)
    """Of these, by whose they are: `model`, `majority`, `label_before`, and `at_label` for the model as it was when labels came."""
    pairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(actual, predicted) -> count; empty with more than 20 classes."""
    majority_pairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    labelled: Mapping[str, int] = field(default_factory=dict)
    """By class, as the next two."""
    predicted: Mapping[str, int] = field(default_factory=dict)
    correct: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    """Of the mistakes of `model` and `majority`; empty where nothing says what they cost."""


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
    asked: Asked | None = None
    """Where labels were asked for."""
    reliability: Reliability | None = None
    """Where probabilities were judged."""
    oldest_waiting_ms: int | None = None
    """Stream time at which the oldest waiting example was predicted; None when none waits."""
    confusion: ConfusionTotals = ConfusionTotals()
    tenants: Sequence[TenantCounts] = ()
    """The largest tenants, and all others together, where there are any."""
