"""The report of `replay`, `demo` and `status` on a stream: equal logs give equal bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import msgspec

from mistakebound.core.messages.tallies import EXAMPLE_OUTCOMES, LABEL_OUTCOMES, Tally
from mistakebound.core.model.model import Model
from mistakebound.core.theorems.claims import Bound


@dataclass(frozen=True, slots=True)
class Baseline:
    """A rule that learns nothing, on the same labelled examples."""

    mistakes: int
    mistake_rate: float


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model's version, size and digest. `features` and `digest` are None where it was not folded."""

    epoch: int
    updates: tuple[int, ...]
    features: int | None = None
    """Names whose theta is not 0."""
    digest: str | None = None
    window: int | None = None
    """`learner.window`; None where all updates count."""
    counting: tuple[int, ...] | None = None
    """Of each partition, how many updates count under the window."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over labelled data."""

    mistakes: int
    """Predictions that differed from their label."""
    updates: int
    """For the perceptron, what the lecture counts as mistakes: y w.x <= 0."""


@dataclass(frozen=True, slots=True)
class Report:
    """Counts for the life of all partitions together; rates are per labelled example (0 where none is)."""

    examples: int
    """Examples consumed."""
    labelled: int
    """Predictions judged by their label, late ones included."""
    mistakes: int
    """Published predictions that differed from their label."""
    updates: int
    mistake_rate: float
    baselines: Mapping[str, Baseline]
    labels: Mapping[str, int]
    example_outcomes: Mapping[str, int]
    waiting: int
    parked: int
    learner: str
    bounds: tuple[Bound, ...]
    margin_upper_bound: float | None
    """No separator of length 1 has a larger margin on the updates; None where nothing is known."""
    model: ModelSummary
    passes: tuple[Pass, ...] = ()
    """Of labelled data replayed more than once, or shuffled."""
    converged: bool | None = None
    """Whether the last pass needed no update, and its hypothesis errs on no row; None for a stream."""
    cycle: tuple[int, int] | None = None
    """Two passes after which theta was the same, with updates in between: the data is not separable."""
    comparators: Mapping[str, Any] | None = None
    """What other rules came to on the same labelled examples, where that was asked for."""
    afresh: str | None = None
    """Why a recording was run anew instead of as recorded, so that its numbers may not be the live stream's. JSON leaves
    it out where it is None: a recording as it was, labelled data, a log."""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        found = asdict(self)
        if self.afresh is None:
            del found["afresh"]
        return found

    def to_json(self) -> bytes:
        """The same report, the same bytes."""
        return msgspec.json.format(msgspec.json.encode(self.as_dict()), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """One partition's counts for life, and what it still holds."""

    life: Tally
    waiting: int
    parked: int


def report(
    partitions: Iterable[PartitionCounts],
    learner: str,
    model: ModelSummary,
    bounds: tuple[Bound, ...] = (),
    margin_upper_bound: float | None = None,
) -> Report:
    """The partitions added up."""
    counted = list(partitions)
    labelled = sum(one.life.judged for one in counted)
    mistakes = sum(one.life.mistakes for one in counted)
    majority = sum(one.life.majority_mistakes for one in counted)
    return Report(
        examples=sum(one.life.examples["consumed"] for one in counted),
        labelled=labelled,
        mistakes=mistakes,
        updates=sum(one.life.updates for one in counted),
        mistake_rate=rate(mistakes, labelled),
        baselines={"majority": Baseline(majority, rate(majority, labelled))},
        labels={
            name: sum(one.life.labels[name] for one in counted) for name in ("consumed", *LABEL_OUTCOMES)
        },
        example_outcomes={name: sum(one.life.examples[name] for one in counted) for name in EXAMPLE_OUTCOMES},
        waiting=sum(one.waiting for one in counted),
        parked=sum(one.parked for one in counted),
        learner=learner,
        bounds=bounds,
        margin_upper_bound=margin_upper_bound,
        model=model,
    )


def rate(part: int, whole: int) -> float:
    """part/whole; 0 if the whole is 0."""
    return part / whole if whole else 0.0


def summary(model: Model, most_digested: float = inf) -> ModelSummary:
    """Version, size and digest of a folded model; no digest where it has more features than `most_digested`."""
    features = sum(value != 0.0 for value in model.learner.theta().values())
    return ModelSummary(
        model.epoch,
        tuple(model.updates),
        features,
        model.digest() if features <= most_digested else None,
        None if model.window is None else model.window.size,
        None if model.window is None else tuple(model.window.counting()),
    )
