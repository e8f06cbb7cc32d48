"""What a worker does when partitions become its own: committed positions, then the logs, then work.

1. Committed positions first: the broker answers only once the previous owner's transaction has ended.
2. Then `updates` of all partitions up to the high watermark, from a checkpoint or from the start.
3. Then `predictions` and `outcomes` of each partition from the recovery point (or a checkpoint, its previous
   owner's too) to the high watermark. A ledger that is already held is kept only if the committed position is
   our own last one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from mistakebound.core.checkpoint_content import Checkpoint, LedgerSnapshot, thaw
from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.rebuild import rebuild
from mistakebound.core.messages.schema import Epoch, RecoveryPoint, encode, read_outcomes, read_recovery_point
from mistakebound.core.messages.tallies import zero
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import Model
from mistakebound.core.records import OUTPUTS, Lost, Position
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.core.step.state import State
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log, OffsetLost, Refused, Session, StaleGeneration
from mistakebound.settings import Settings
from mistakebound.worker.epochs.epochs import newest_epochs, refuse_changed
from mistakebound.worker.epochs.input_topics import refuse_other_topics
from mistakebound.worker.lost_input import deleted_unread

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class WorkerState:
    """Everything that a worker holds, and keeps from one assignment to the next."""

    state: State
    fold: Fold
    positions: dict[int, Position] = field(default_factory=dict)
    """Our own last committed position of each owned partition."""
    lost: list[Lost] = field(default_factory=list)
    """Input deleted before it was read; the first records that the next step has to take."""


class Frozen(NamedTuple):
    """A partition's ledger, read from a checkpoint."""

    epoch: int
    """The epoch in which it was written."""
    ledger: LedgerSnapshot


class Start(NamedTuple):
    """Offsets from which a partition's `predictions` and `outcomes` must be read again."""

    predictions: int
    outcomes: int


Committed = Mapping[int, Position | None]
Borrow = Callable[[Mapping[int, Start]], Mapping[int, Frozen]]
"""Given where reading starts for each partition that is new here, returns ledgers that start later."""


def fold_updates(
    log: Log, settings: Settings, checkpoint: Checkpoint | None, ends: Sequence[int] | None = None
) -> Fold:
    """Fold all `updates` to the high watermark, or to these offsets, under the settings of the newest epoch there.

    Raises Refused (also if these differ from `settings`), BadLog, BadSnapshot, Unreachable.
    """
    partitions = log.partitions
    fold = Fold(settings, partitions, checkpoint.epochs if checkpoint is not None else ())
    if checkpoint is not None and checkpoint.model.epoch == fold.model.epoch:
        fold.restore(checkpoint.model, checkpoint.updates_next)
    else:
        fold.next_offsets = _starts(log)
    while not catch_up(log, fold, ends):
        fold = Fold(settings, partitions, fold.epochs.values())
        fold.next_offsets = _starts(log)
    if fold.epoch is None:
        raise Refused("`updates` holds no epoch; start the worker with `mistakebound run` first")
    refuse_changed(fold.epoch, fold.model.settings)
    fold.must_be_whole()
    return fold


def catch_up(log: Log, fold: Fold, ends: Sequence[int] | None = None) -> bool:
    """Fold the updates that were added since, to the high watermark or these offsets; False when a newer epoch has begun."""
    return all(
        fold.fold(p, log.read("updates", p, start, None if ends is None else ends[p]))
        for p, start in enumerate(fold.next_offsets)
    )


def _starts(log: Log) -> list[int]:
    """Where each partition of `updates` starts. Raises Refused if first records were deleted."""
    starts = [log.low_watermark("updates", p) for p in range(log.partitions)]
    for p, start in enumerate(starts):
        if start > 0:
            raise Refused(
                f"updates-{p} starts at offset {start}: its first updates were deleted, and no checkpoint "
                "covers them. Restore a checkpoint, or take another log.prefix and replay the inputs there"
            )
    return starts


def take_over(
    log: Log,
    session: Session,
    settings: Settings,
    partitions: Iterable[int],
    held: WorkerState | None,
    checkpoint: Checkpoint | None,
    *,
    from_outcomes: bool = False,
    skip_to_oldest: bool = False,
    borrow: Borrow | None = None,
) -> WorkerState:
    """Everything that the owner of `partitions` must hold, with the session placed to go on.

    `from_outcomes`: where the group's offsets were lost or moved, go on from the newest committed outcomes.
    `skip_to_oldest`: where unread input was deleted, go on from the oldest that is there.
    A borrowed ledger that does not fit the log is left alone, with a warning.
    Raises Refused, BadLog, Unreachable; with a checkpoint also BadSnapshot, and then any of them may be the
    checkpoint's fault. StaleGeneration where the positions moved meanwhile: others own the partitions by now, what
    was read is of two moments, and nothing is wrong with the log.
    """
    owned = sorted(partitions)
    committed: Committed | None = None
    try:
        committed = session.committed(owned)
        return _take_over(
            log, session, settings, committed, held, checkpoint, from_outcomes, skip_to_oldest, borrow
        )
    except (BadLog, Refused) as error:
        _refuse_other_inputs(log)
        if committed is not None and session.committed(owned) != committed:
            raise StaleGeneration(
                f"the positions moved while this worker took partitions over ({error}); poll again"
            ) from error
        raise


def _refuse_other_inputs(log: Log) -> None:
    """Whatever else may seem wrong with a log whose inputs were exchanged, that is the reason."""
    newest: list[Epoch] = []
    with suppress(BadLog):
        newest = newest_epochs(log)[:1]
    for epoch in newest:
        refuse_other_topics(log, epoch)


def _take_over(
    log: Log,
    session: Session,
    settings: Settings,
    committed: Committed,
    held: WorkerState | None,
    checkpoint: Checkpoint | None,
    from_outcomes: bool,
    skip_to_oldest: bool,
    borrow: Borrow | None,
) -> WorkerState:
    owned = list(committed)
    if held is not None and catch_up(log, held.fold):
        fold = held.fold
    else:
        held, fold = None, fold_updates(log, settings, checkpoint)
    assert fold.epoch is not None
    refuse_other_topics(log, fold.epoch)
    if from_outcomes:
        committed = {p: _newest_position(log, p, committed[p]) for p in owned}
    positions = {p: position for p in owned if (position := committed[p]) is not None}
    kept = {p for p in positions if held is not None and held.positions.get(p) == positions[p]}
    frozen = {} if checkpoint is None else _frozen(log, checkpoint)
    starts = {p: _start(position, frozen.get(p)) for p, position in positions.items() if p not in kept}
    borrowed = borrow(starts) if borrow is not None and starts else {}
    ledgers: dict[int, Ledger] = {}
    lost: list[Lost] = []
    for p in owned:
        if p not in positions:
            ledgers[p] = _begin_ledger(log, settings, p, committed_none_hint=not from_outcomes)
        elif held is not None and p in kept:
            ledgers[p] = held.state.ledgers[p]
        else:
            ledgers[p] = _rebuild_borrowed(
                log, settings, p, positions[p], borrowed.get(p), fold.model
            ) or _rebuild_ledger(log, settings, p, positions[p], frozen.get(p), fold.model)
        check_tally(fold.model, p, ledgers[p].tallies.epoch.updates)
        fold.model.knows(p, ledgers[p].tallies.epoch.judged)
        gone = deleted_unread(log, p, ledgers[p]) if skip_to_oldest else {}
        lost += gone.values()
        examples, labels = ledgers[p].examples_next, ledgers[p].labels_next
        session.seek(
            p,
            gone["examples"].offset + 1 if "examples" in gone else examples,
            gone["labels"].offset + 1 if "labels" in gone else labels,
        )
    limits = SizeLimits(**{topic.replace("-", "_"): log.max_record_bytes(topic) for topic in OUTPUTS})
    return WorkerState(State(fold.model.settings, fold.model, ledgers, limits), fold, positions, lost)


def _frozen(log: Log, checkpoint: Checkpoint) -> dict[int, Frozen]:
    """Its ledgers, except those that are ahead of the log."""
    return {
        p: Frozen(checkpoint.model.epoch, ledger)
        for p, ledger in checkpoint.ledgers.items()
        if ledger.outcomes_end <= log.high_watermark("outcomes", p)
    }


def _start(position: Position, frozen: Frozen | None) -> Start:
    if frozen is not None:
        return Start(frozen.ledger.predictions_end, frozen.ledger.outcomes_end)
    recovery_point = read_recovery_point(position)
    return Start(recovery_point.predictions, recovery_point.outcomes)


def _rebuild_borrowed(
    log: Log, settings: Settings, partition: int, position: Position, frozen: Frozen | None, model: Model
) -> Ledger | None:
    """The ledger from another slot's checkpoint; None without one, or if it does not fit the log."""
    if frozen is None:
        return None
    try:
        ledger = _rebuild_ledger(log, settings, partition, position, frozen, model)
        check_tally(model, partition, ledger.tallies.epoch.updates)
    except (BadLog, BadSnapshot, OffsetLost) as error:
        _log.warning("borrowed_ledger_left", partition=partition, reason=str(error))
        return None
    _log.info("ledger_borrowed", partition=partition, **_start(position, frozen)._asdict())
    return ledger


def _rebuild_ledger(
    log: Log, settings: Settings, partition: int, position: Position, frozen: Frozen | None, model: Model
) -> Ledger:
    recovery_point = read_recovery_point(position)
    if frozen is not None:
        ledger = thaw(frozen.ledger, settings.labels)
        recovery_point = RecoveryPoint(*_start(position, frozen), recovery_point.source)
        if frozen.epoch != model.epoch:
            ledger.tallies.epoch = zero()
    else:
        ledger = Ledger(settings.labels)
        ledger.predictions_end, ledger.outcomes_end = recovery_point.predictions, recovery_point.outcomes
    try:
        return rebuild(
            ledger,
            position,
            recovery_point,
            model.epoch,
            log.read("predictions", partition, recovery_point.predictions),
            log.read("outcomes", partition, recovery_point.outcomes),
        )
    except OffsetLost as error:
        raise OffsetLost(
            f"{error}. Partition {partition} still needs its records from there: raise the retention of "
            "`predictions` and `outcomes` (`mistakebound topics check`)"
        ) from None


def _begin_ledger(log: Log, settings: Settings, partition: int, *, committed_none_hint: bool) -> Ledger:
    """The ledger of a partition for which the group has no position. Raises Refused if its outputs hold work."""
    for topic in ("predictions", "outcomes"):
        if newest_record(log, topic, partition) is not None:
            hint = "; start with --resume-from-outcomes to go on from there" if committed_none_hint else ""
            raise Refused(
                f"the group {settings.group!r} has no committed offset for partition {partition}, but "
                f"{topic} holds its work: the offsets were lost, or the group was renamed, and starting over "
                f"would predict every example twice{hint}"
            )
    ledger = Ledger(settings.labels)
    ledger.examples_next = log.low_watermark("examples", partition)
    ledger.labels_next = log.low_watermark("labels", partition)
    return ledger


def _newest_position(log: Log, partition: int, committed: Position | None) -> Position | None:
    """The position in the newest committed outcomes record; `committed` where there is no such record.

    Offsets are always committed together with such a record, so the two differ only where somebody else has
    changed the offsets.
    """
    newest = newest_record(log, "outcomes", partition)
    if newest is None:
        return committed
    last = read_outcomes(newest)
    if last.inputs is None or last.recovery_point is None:
        raise BadLog(
            f"outcomes-{partition} offset {newest.offset} is not the last part of its partition step"
        )
    position = Position(last.inputs.examples, last.inputs.labels, encode(last.recovery_point).decode())
    if position != committed:
        _log.warning("resumed_from_outcomes", partition=partition, inputs=str(last.inputs))
    return position


def check_tally(model: Model, partition: int, counted: int) -> None:
    """Raises BadLog unless the partition has as many updates as were counted in the epoch."""
    if model.updates[partition] != counted:
        raise BadLog(
            f"updates-{partition} holds {model.updates[partition]} updates of epoch {model.epoch}, but the "
            f"tally in outcomes-{partition} says {counted}; a topic was truncated or written by others"
        )


def epochs_of(fold: Fold) -> list[Epoch]:
    """Every epoch read, oldest first."""
    return [fold.epochs[number] for number in sorted(fold.epochs)]
