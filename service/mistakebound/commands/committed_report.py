"""What was done on a log and what is left, from what was committed to it: no worker is needed.

A worker may go on meanwhile. All counts, and the model, are then those of one cut through the log: of each partition
all that was committed up to one of its `outcomes` records, and `updates` up to the number that this record counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from mistakebound.core.messages.costs import Costs, costs_of
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.schema import Epoch, Outcomes, Update, read_outcomes, read_update
from mistakebound.core.messages.tallies import Tallies, Tally, zero
from mistakebound.core.model.fold import Fold
from mistakebound.core.records import INPUTS, Topic
from mistakebound.core.reporting.report import ModelSummary, PartitionCounts, Report, report, summary
from mistakebound.core.reporting.status import Behind
from mistakebound.core.theorems.asked import expected_mistakes
from mistakebound.core.theorems.changes import proved_changes
from mistakebound.core.theorems.claims import certificate, claims
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import LabelSettings, LearnerSettings, Section, Settings
from mistakebound.worker.epochs.epochs import newest_epochs
from mistakebound.worker.takeover import catch_up, fold_updates
from mistakebound.worker.torn_steps import refuse_other_tally

S = TypeVar("S", bound=Section)

FIRST_LOOK = 64
"""Offsets of `updates`, looked at from their end: a worker has seldom written more since the cut."""


class Done(NamedTuple):
    """The newest partition step of a partition, as its last `outcomes` record has it."""

    offset: int
    epoch: int
    tallies: Tallies

    @property
    def of_epoch(self) -> Tally:
        """The counts of its epoch."""
        return self.tallies.epoch


@dataclass(frozen=True, slots=True)
class Cut:
    """What was committed to a log up to one place in each partition."""

    epochs: Sequence[Epoch]
    """The present epoch and the one before it, without those that do not exist."""
    done: Sequence[Done | None]
    """By partition; None where no work was done."""

    @property
    def epoch(self) -> Epoch | None:
        """The present epoch; None before the first."""
        return self.epochs[0] if self.epochs else None

    @property
    def number(self) -> int:
        """Of the present epoch; 0 before the first."""
        return self.epochs[0].epoch if self.epochs else 0

    def updates(self) -> list[int]:
        """How many updates of the present epoch each partition has."""
        return [0 if of is None else of.updates for of in self.of_epoch()]

    def of_epoch(self) -> list[Tally | None]:
        """The counts of the present epoch by partition; None where it has not worked yet."""
        return [None if done is None or done.epoch != self.number else done.of_epoch for done in self.done]


def read_cut(log: Log) -> Cut:
    """The newest cut. Raises BadLog, Unreachable."""
    while True:
        epochs = newest_epochs(log)
        newest = [newest_record(log, "outcomes", p) for p in range(log.partitions)]
        cut = Cut(
            epochs,
            [None if record is None else _done(record.offset, read_outcomes(record)) for record in newest],
        )
        if not any(done is not None and done.epoch > cut.number for done in cut.done):
            return cut  # else an epoch has begun in between


def _done(offset: int, outcomes: Outcomes) -> Done | None:
    tallies = outcomes.tallies
    return None if tallies is None else Done(offset, outcomes.model.epoch, tallies)


def read_report(log: Log, settings: Settings, *, fold: bool) -> Report:
    """The report of everything committed; the model's size and bounds only where `fold`.

    Raises Refused, BadLog, Unreachable.
    """
    return report_of(log, read_cut(log), settings, fold=fold)


def report_of(log: Log, cut: Cut, settings: Settings, *, fold: bool) -> Report:
    """The same for a cut. Its epoch says which learner it was; where `fold`, `settings` must agree with that."""
    learner = settings.learner if cut.epoch is None else _section(LearnerSettings, cut.epoch, "learner")
    labels = settings.labels if cut.epoch is None else _section(LabelSettings, cut.epoch, "labels")
    classes, costs = declared(labels), _costs(labels, settings.labels)
    if not fold:
        model = ModelSummary(cut.number, tuple(cut.updates()), window=learner.window)
        return report(_counts(cut), learner.kind, model, classes=classes, costs=costs)
    folded, cut = fold_cut(log, cut, settings)
    counted = [of for of in cut.of_epoch() if of is not None]
    found = folded.model
    bounds, expected = claims(found, counted), expected_mistakes(found, counted)
    model = summary(found)
    return report(
        _counts(cut),
        learner.kind,
        model,
        bounds,
        certificate(found),
        expected=expected,
        proved=proved_changes(found),
        classes=found.classes,
        costs=costs,
    )


def _costs(of_epoch: LabelSettings, now: LabelSettings) -> Costs | None:
    """What mistakes cost: as the epoch says, where it learns from that, else as it is set now."""
    given = now.costs if of_epoch.costs is None else of_epoch.costs
    try:
        return costs_of(of_epoch.model_copy(update={"costs": given}))
    except ValueError as error:
        raise Refused(f"labels.costs does not fit the classes of the epoch: {error}") from None


def _section(kind: type[S], epoch: Epoch, name: str) -> S:
    """As far as this version knows them: a newer one may have written more."""
    table = epoch.settings[name]
    return kind.model_validate({key: table[key] for key in kind.model_fields if key in table})


def _counts(cut: Cut) -> list[PartitionCounts]:
    found = []
    for done, of_epoch in zip(cut.done, cut.of_epoch(), strict=True):
        tallies = Tallies(zero(), zero()) if done is None else done.tallies
        life = tallies.life
        waiting, parked = _undecided(life.examples), _undecided(life.labels)
        found.append(PartitionCounts(life, waiting, parked, of_epoch, tallies))
    return found


def _undecided(counts: dict[str, int]) -> int:
    """How many of the inputs consumed have no outcome yet."""
    return counts["consumed"] - sum(count for name, count in counts.items() if name != "consumed")


def fold_cut(log: Log, cut: Cut, settings: Settings) -> tuple[Fold, Cut]:
    """The model at a cut, and the cut.

    It is moved on where updates were decided by a model with others that lie beyond it: partitions are read one after
    another, and a step may have written to several. All that it can come to had been committed before it was made.
    """
    fold = fold_updates(log, settings, None, _ends(log, cut))
    while True:
        for p, known in enumerate(cut.updates()):
            refuse_other_tally(log, fold.model, p, known)
        further = _moved_on(log, cut, fold.model.needed)
        if further is None:
            return fold, cut
        cut = further
        catch_up(log, fold, _ends(log, cut))


def _moved_on(log: Log, cut: Cut, needed: Sequence[int]) -> Cut | None:
    """The cut with at least so many updates in each partition; None where it holds them already, or the log does not."""
    done = list(cut.done)
    for p, (need, known) in enumerate(zip(needed, cut.updates(), strict=True)):
        if need > known:
            before = done[p]
            start = log.low_watermark("outcomes", p) if before is None else before.offset + 1
            for record in log.read("outcomes", p, start):
                found = _done(record.offset, read_outcomes(record))
                if found is not None and found.epoch == cut.number and found.of_epoch.updates >= need:
                    done[p] = found
                    break
    return None if done == list(cut.done) else replace(cut, done=done)


def _ends(log: Log, cut: Cut) -> list[int]:
    """Where the cut goes through each partition of `updates`."""
    return [_end(log, p, (cut.number, count)) for p, count in enumerate(cut.updates())]


def _end(log: Log, partition: int, last: tuple[int, int]) -> int:
    """The offset after the update `last`, an epoch and a number; 0 is that of the record that begins the epoch."""
    low, high = log.low_watermark("updates", partition), log.high_watermark("updates", partition)
    span = FIRST_LOOK
    while low < high:
        start, end = max(low, high - span), low
        for record in log.read("updates", partition, start, high):
            message = read_update(record)
            if (message.epoch, message.n if isinstance(message, Update) else 0) <= last:
                end = record.offset + 1
        if end > start:
            return end
        high = start
        span *= 4
    return low


def read_lag(log: Log) -> dict[int, Behind]:
    """How far each input is ahead of what was committed; 0 where no record is left to read."""
    committed = log.group_positions()
    ends = log.stable_ends([(topic, p) for topic in INPUTS for p in range(log.partitions)])

    def behind(topic: Topic, p: int) -> int:
        low, end, position = log.low_watermark(topic, p), ends[topic, p], committed.get(p)
        start = low if position is None else getattr(position, topic)
        if start >= end or start < low:  # nothing is left, or some of it was deleted unread
            return max(0, end - start)
        # The committed offset is the one after the last record: what lies behind may be markers and aborted records.
        first = next(iter(log.read(topic, p, start, end)), None)
        return 0 if first is None else end - first.offset

    return {p: Behind(behind("examples", p), behind("labels", p)) for p in range(log.partitions)}
