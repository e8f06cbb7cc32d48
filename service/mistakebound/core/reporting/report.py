"""The report of `replay`, `demo` and `status` on a stream: equal logs give equal bytes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET

from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.costs import Costs
from mistakebound.core.messages.tallies import EXAMPLE_OUTCOMES, LABEL_OUTCOMES, Tallies, Tally
from mistakebound.core.messages.tenants import TenantCounts, by_tenant
from mistakebound.core.model.model import Model
from mistakebound.core.records import Stream
from mistakebound.core.reporting.measures import NOTHING_JUDGED, ConfusionReport, confusion_report
from mistakebound.core.reporting.probabilities import Probabilities, probabilities
from mistakebound.core.theorems.asked import ExpectedMistakes
from mistakebound.core.theorems.changes import ProvedChanges
from mistakebound.core.theorems.claims import Bound
from mistakebound.settings import LabelValue

FEWEST_TO_COMPARE = 100
"""Labelled examples from which on a learner is compared with always the majority: it has to make its first mistakes."""
ONLY_WHERE_TOLD = (
    "worse_than_majority",
    "rejected",
    "afresh",
    "asked",
    "proved_changes",
    "tenants",
    "reevaluation",
    "probabilities",
)
"""Fields that earlier versions did not have: a report with nothing to tell is the same, byte for byte, as theirs."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A rule that learns nothing, on the same labelled examples."""

    mistakes: int
    mistake_rate: float | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replay read a record; all None where that is not known."""

    line: int | None = None
    """Of a file of labelled data."""
    partition: int | None = None
    """Of a recording, with `offset`."""
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records of one stream that a replay could not use, all for one reason."""

    stream: Stream
    reason: str
    """As dead letters have it; or `duplicate-id`, for a row of labelled data whose id came before."""
    count: int
    first: Place
    detail: str
    """Of the first: the field, its value and the remedy."""


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
class Reevaluation:
    """What predictions came to when they were made again while labels were awaited."""

    judged: int
    mistakes: tuple[int, ...]
    """Of the published predictions, of those at the end of each bin of the wait, the last when the label came."""
    mistake_rates: tuple[float | None, ...]
    volatility: float | None
    """How often an example's prediction changed from one of these times to the next, on average."""
    mended: int
    """Examples whose published prediction was wrong and whose last one was right."""
    spoiled: int
    """The other way round."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over labelled data."""

    mistakes: int
    """Predictions that differed from their label."""
    updates: int
    """For the perceptron, what the lecture counts as mistakes: y w.x <= 0."""


@dataclass(frozen=True, slots=True)
class AskedLabels:
    """Examples predicted while labels were asked for, that have ended since; those that wait are not among them."""

    labelled: int
    """Asked for, and the label came."""
    missing: int
    """Asked for, and given up."""
    unasked_labelled: int
    unasked_missing: int
    mistakes: int
    """Among the labels asked for."""
    estimated_mistakes: float
    """Among all of them, without bias where none is missing: the sum of the weights of `mistakes`."""
    estimated_mistake_rate: float | None
    """Of the same, labelled or not."""
    expected: ExpectedMistakes | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Counts for the life of all partitions together; rates are per labelled example (None where none is)."""

    examples: int
    """Examples consumed."""
    labelled: int
    """Predictions judged by their label, late ones included."""
    mistakes: int
    """Published predictions that differed from their label."""
    updates: int
    mistake_rate: float | None
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
    """Whether the last pass needed no update, and its hypothesis errs on no row; None for a stream, or where nothing was judged."""
    cycle: tuple[int, int] | None = None
    """Two passes after which theta was the same, with updates in between: the data is not separable."""
    comparators: Mapping[str, Any] | None = None
    """What other rules came to on the same labelled examples, where that was asked for."""
    worse_than_majority: bool = False
    """More mistakes than always the majority, of at least `FEWEST_TO_COMPARE` labelled examples."""
    rejected: tuple[Rejected, ...] = ()
    """What a replay could not use, and why; of several passes, what the first could not."""
    afresh: str | None = None
    """Why a recording was run anew instead of as recorded, so that its numbers may not be the live stream's."""
    asked: AskedLabels | None = None
    """Where labels were asked for."""
    reevaluation: Reevaluation | None = None
    """Where that was asked for."""
    confusion: ConfusionReport = NOTHING_JUDGED
    """Judged predictions by (actual, predicted)."""
    confusion_of_epoch: ConfusionReport = NOTHING_JUDGED
    """The same of the predictions made in the present epoch alone."""
    proved_changes: ProvedChanges | None = None
    """Where a margin is declared and the model was folded: how often the stream must have changed in this epoch."""
    tenants: tuple[TenantCounts, ...] = ()
    """Where `features.cross` is set, or was: the largest tenants first, all others together last."""
    probabilities: Probabilities | None = None
    """Where predictions had one, and labels came to them."""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values. A field of `ONLY_WHERE_TOLD` is left out where it has nothing to tell."""
        whole: dict[str, Any] = msgspec.to_builtins(self)
        for name in ONLY_WHERE_TOLD:
            if not whole[name]:
                del whole[name]
        return whole

    def to_json(self) -> bytes:
        """The same report, the same bytes."""
        return msgspec.json.format(msgspec.json.encode(self.as_dict()), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """One partition's counts for life, and what it still holds."""

    life: Tally
    waiting: int
    parked: int
    of_epoch: Tally | None = None
    """Counts of the present epoch; None where it has not worked yet."""
    tallies: Tallies | None = None
    """Which also count by tenant."""


def report(
    partitions: Iterable[PartitionCounts],
    learner: str,
    model: ModelSummary,
    bounds: tuple[Bound, ...] = (),
    margin_upper_bound: float | None = None,
    rejected: tuple[Rejected, ...] = (),
    expected: ExpectedMistakes | None = None,
    classes: Sequence[LabelValue] = (),
    proved: ProvedChanges | None = None,
    costs: Costs | None = None,
) -> Report:
    """The partitions added up; `classes` as declared, empty where they are open; `costs` of mistakes."""
    counted = list(partitions)
    of_epoch = [one.of_epoch for one in counted if one.of_epoch is not None]
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
        worse_than_majority=labelled >= FEWEST_TO_COMPARE and mistakes > majority,
        rejected=rejected,
        asked=_asked(counted, expected),
        confusion=confusion_report([one.life for one in counted], classes, labelled, costs),
        confusion_of_epoch=confusion_report(of_epoch, classes, costs=costs),
        proved_changes=proved,
        tenants=by_tenant([one.tallies for one in counted if one.tallies is not None]),
        probabilities=probabilities(one.life for one in counted),
    )


def _asked(partitions: Iterable[PartitionCounts], expected: ExpectedMistakes | None) -> AskedLabels | None:
    found = [asked for one in partitions if (asked := one.life.asked) is not UNSET]
    if not found:
        return None
    millionths = sum(asked.estimate for asked in found)
    ended = sum(
        asked.labelled + asked.missing + asked.unasked_labelled + asked.unasked_missing for asked in found
    )
    return AskedLabels(
        labelled=sum(asked.labelled for asked in found),
        missing=sum(asked.missing for asked in found),
        unasked_labelled=sum(asked.unasked_labelled for asked in found),
        unasked_missing=sum(asked.unasked_missing for asked in found),
        mistakes=sum(asked.mistakes for asked in found),
        estimated_mistakes=millionths / MILLION,
        estimated_mistake_rate=rate(millionths, MILLION * ended),
        expected=expected,
    )


def rate(part: int, whole: int) -> float | None:
    """part/whole; None if the whole is 0: of nothing there is no rate, and 0 would be the best there is."""
    return part / whole if whole else None


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
