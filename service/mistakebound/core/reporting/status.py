"""How far the work is: what `status --json` prints and a worker's `/api/status` answers, defined once.

A report, and how far the inputs are ahead of it. `worker` is what only a running worker knows; `status`,
which reads the log and asks no worker, leaves it out. New fields may come; none changes its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from mistakebound.core.messages.schema import Epoch
from mistakebound.core.model.settings_diff import changes
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.explain import ExplainedMistake
from mistakebound.settings import LabelValue

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# --- from the log -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Behind:
    """How far the inputs of a partition are ahead of what was committed, in offsets: from the next record that is
    there to read to the last stable offset. 0 where no record is left, whatever markers and aborted records are."""

    examples: int
    labels: int


@dataclass(frozen=True, slots=True)
class BaseVersion:
    """The version that an epoch started from."""

    epoch: int
    updates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting in the epoch before and in this one."""

    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class EpochStatus:
    """The epoch that the log is in."""

    number: int
    base: BaseVersion | None
    """None: it started from nothing."""
    changed: Mapping[str, ChangedSetting]


# --- from a running worker --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition that the worker owns. Counts are for life."""

    partition: int
    examples: int
    """Examples predicted."""
    labelled: int
    mistakes: int
    waiting: int
    parked: int
    oldest_waiting_seconds: float | None
    """Stream time since the oldest waiting example was predicted: the clock by which it expires. It stands still while
    no record comes."""
    oldest_waiting_at: float | None = None
    """Stream time at which it was predicted, as Unix time: the clock on the wall goes on."""


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """The worker's checkpoints."""

    written_at: float | None
    """Unix time of the newest durable one; None before the first."""
    size_bytes: int
    pending_updates: int
    """Updates that it does not hold."""
    failures: int
    """Since the process began."""


@dataclass(frozen=True, slots=True)
class Weight:
    name: str
    value: float
    theta: float | None = None
    """What the weight is the exponential of, where learning multiplies weights; None where it adds to them."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What the model says, by name: weights, or what else its learner holds."""

    what: str
    """What the values are."""
    count: int
    """How many there are."""
    top: tuple[Weight, ...]
    """The largest by size; by that of `theta` where there is one."""
    initial: float | None = None
    """Where learning multiplies weights: the weight before the first update."""
    linear: bool = True
    """Whether a score is the sum over the features of weight times value."""


@dataclass(frozen=True, slots=True)
class History:
    """Counts since the process began, in buckets of equal length; buckets in which nothing happened are left
    out. Each column has one value a bucket."""

    seconds: int
    at: tuple[int, ...]
    """Unix time at which the bucket began."""
    examples: tuple[int, ...]
    """Predictions published."""
    labelled: tuple[int, ...]
    mistakes: tuple[int, ...]
    majority_mistakes: tuple[int, ...]
    updates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """Published predictions of one class whose label said one class. Classes are spelled as in tables."""

    actual: str
    predicted: str
    count: int
    labelled: int
    """Judged predictions whose label said `actual`, whatever they were."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know."""

    level: Literal["info", "warning", "alarm"]
    text: str


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker. Counts beside it speak of the partitions that it owns; `model`, its bounds and `updates` by
    partition of all updates that it knows."""

    slot: str
    group: str
    prefix: str
    topics: Mapping[str, str]
    """The names of the topics on the log."""
    classes: tuple[LabelValue, ...]
    """As declared; of two the first is the positive one. Empty where any text is a class."""
    first_commands: tuple[str, ...]
    """Commands that send a first example, and its label; none where no other process can."""
    version: str
    state: str
    live: bool
    ready: bool
    reason: str
    now: float
    """Unix time of this answer, as are the other times."""
    started_at: float
    counted_at: float
    """When the counts were taken."""
    measured_at: float | None
    """When the model was: it costs a pass over the weights."""
    stepped_at: float | None
    """When the last step was committed."""
    partition_count: int | None
    partitions: tuple[PartitionStatus, ...]
    max_delay_seconds: float | None
    checkpoint: CheckpointStatus | None
    """None if checkpoints are off."""
    hypothesis: Hypothesis | None
    no_bound: str | None
    """Why there is no bound, and what to do; None where there is one."""
    window_margin_upper_bound: float | None
    """`margin_upper_bound` on the newest updates alone."""
    declared_margin: float | None
    mistakes: tuple[ExplainedMistake, ...]
    """The newest, newest first; of one step the first few of each partition, and
    fewer where they come by the thousand."""
    judged: tuple[Judged, ...]
    """Since the process began, most frequent first: at most a hundred pairs of classes."""
    history: tuple[History, ...]
    """Finest first."""
    notices: tuple[Notice, ...]


# --- both -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Report):
    """A report, how far it is behind, and who made it."""

    lag: Mapping[str, Behind]
    """By partition."""
    epoch: EpochStatus | None
    worker: WorkerStatus | None = None


def status(
    report: Report, lag: Mapping[int, Behind], epoch: EpochStatus | None, worker: WorkerStatus | None = None
) -> Status:
    """A report with what `status` adds to it."""
    reported: dict[str, Any] = {field.name: getattr(report, field.name) for field in fields(report)}
    return Status(**reported, lag={str(p): both for p, both in lag.items()}, epoch=epoch, worker=worker)


def epoch_status(epoch: Epoch, before: Epoch | None) -> EpochStatus:
    """An epoch, and which settings differ from the one before it."""
    base = None if epoch.base is None else BaseVersion(epoch.base.epoch, tuple(epoch.base.updates))
    differing = () if before is None else changes(before.settings, epoch.settings)
    return EpochStatus(
        epoch.epoch, base, {each.key: ChangedSetting(each.before, each.after) for each in differing}
    )


def schema() -> dict[str, Any]:
    """JSON Schema of `Status` as JSON."""
    return schema_of("status", Status)


def schema_of(title: str, *types: Any) -> dict[str, Any]:
    """JSON Schema, as JSON, of what is of one of these types."""
    found, parts = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    whole = found[0] if len(found) == 1 else {"anyOf": list(found)}
    text = msgspec.json.encode({"$schema": DIALECT, "title": title, **whole, "$defs": parts})
    plain: dict[str, Any] = msgspec.json.decode(text)  # a default may be a tuple
    return plain
