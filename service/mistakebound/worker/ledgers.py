"""A partition's ledger as its owner must hold it: rebuilt from the log, from a checkpoint on, or begun."""

from collections.abc import Iterator
from typing import NamedTuple

import structlog

from mistakebound.core.checkpoint_content import Checkpoint, LedgerSnapshot, thaw
from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.limits import limits_of
from mistakebound.core.ledger.rebuild import rebuild
from mistakebound.core.messages.schema import RecoveryPoint, read_recovery_point
from mistakebound.core.model.fold import Fold
from mistakebound.core.records import Position, Record
from mistakebound.log.newest import newest_record
from mistakebound.log.oldest import from_oldest
from mistakebound.log.protocol import Log, OffsetLost, Refused
from mistakebound.settings import Settings
from mistakebound.worker.missing_predictions import lacks_predictions
from mistakebound.worker.torn_steps import never_stepped, newest_step, refuse_other_tally

_log = structlog.get_logger(__name__)


class Frozen(NamedTuple):
    """A partition's ledger, read from a checkpoint."""

    epoch: int
    """The epoch in which it was written."""
    ledger: LedgerSnapshot


class Start(NamedTuple):
    """Offsets from which a partition's `predictions` and `outcomes` must be read again."""

    predictions: int
    outcomes: int


def frozen_in(log: Log, checkpoint: Checkpoint) -> dict[int, Frozen]:
    """Its ledgers, except those that are ahead of the log."""
    return {
        p: Frozen(checkpoint.model.epoch, ledger)
        for p, ledger in checkpoint.ledgers.items()
        if ledger.outcomes_end <= log.high_watermark("outcomes", p)
    }


def start_of(position: Position, frozen: Frozen | None) -> Start:
    if frozen is not None:
        return Start(frozen.ledger.predictions_end, frozen.ledger.outcomes_end)
    recovery_point = read_recovery_point(position)
    return Start(recovery_point.predictions, recovery_point.outcomes)


def build_ledger(
    log: Log,
    settings: Settings,
    partition: int,
    position: Position,
    *,
    fold: Fold,
    own: Frozen | None,
    lent: Frozen | None,
) -> Ledger:
    return _rebuild_borrowed(log, settings, partition, position, lent, fold) or _rebuild_ledger(
        log, settings, partition, position, own, fold
    )


def _rebuild_borrowed(
    log: Log, settings: Settings, partition: int, position: Position, frozen: Frozen | None, fold: Fold
) -> Ledger | None:
    """The ledger from another slot's checkpoint; None without one, or if it does not fit the log."""
    if frozen is None:
        return None
    try:
        ledger = _rebuild_ledger(log, settings, partition, position, frozen, fold)
        refuse_other_tally(log, fold.model, partition, ledger.tallies.epoch.updates)
    except (BadLog, BadSnapshot, OffsetLost) as error:
        _log.warning("borrowed_ledger_left", partition=partition, reason=str(error))
        return None
    _log.info("ledger_borrowed", partition=partition, **start_of(position, frozen)._asdict())
    return ledger


def _rebuild_ledger(
    log: Log, settings: Settings, partition: int, position: Position, frozen: Frozen | None, fold: Fold
) -> Ledger:
    recovery_point = read_recovery_point(position)
    if frozen is not None:
        ledger = thaw(frozen.ledger, settings.labels)
        recovery_point = RecoveryPoint(*start_of(position, frozen), recovery_point.source)
        if frozen.epoch != fold.model.epoch:
            ledger.tallies.begin_epoch()
    else:
        ledger = Ledger(settings.labels)
        ledger.predictions_end, ledger.outcomes_end = recovery_point.predictions, recovery_point.outcomes
    try:
        predictions, deleted = _predictions(log, partition, recovery_point.predictions)
        rebuilt = rebuild(
            ledger,
            position,
            recovery_point,
            limits_of(fold.epochs.values()),
            predictions,
            log.read("outcomes", partition, recovery_point.outcomes),
            0 if frozen is None else frozen.epoch,
        )
        if deleted:
            _must_be_all_that_waits(rebuilt, partition, recovery_point.predictions)
    except OffsetLost as error:
        raise OffsetLost(
            f"{error}. Partition {partition} still needs its records from there, and no checkpoint reaches beyond "
            "what was deleted. Restore one to checkpoint.url, this slot's or another's; or take another log.prefix "
            "and replay the inputs there. Then raise the retention of `predictions` and `outcomes` (`mistakebound "
            "topics check`)"
        ) from None
    if frozen is not None and rebuilt.outcomes_end == frozen.ledger.outcomes_end:
        _must_have_been_committed(log, partition, position)
    return rebuilt


def _predictions(log: Log, partition: int, start: int) -> tuple[Iterator[Record], bool]:
    """Those from `start` on, and whether retention has deleted some, so that they begin with the oldest that is left."""
    if log.low_watermark("predictions", partition) > start:
        return from_oldest(log, "predictions", partition), True
    return log.read("predictions", partition, start), False


def _must_be_all_that_waits(ledger: Ledger, partition: int, start: int) -> None:
    """Predictions from `start` on were deleted: no matter where they were of examples that have ended.

    So it is with a partition that was idle for longer than they are kept. The markers of transactions are deleted, too,
    and so even where nothing lay there, the log begins above. Of the deleted ones none is missed.
    """
    waiting = ledger.tallies.life.waiting
    if len(ledger.waiting) != waiting:
        raise OffsetLost(
            f"predictions-{partition} no longer holds offset {start}, and of {waiting} examples that wait only "
            f"{len(ledger.waiting)} are left there"
        )
    ledger.missing = 0


def _must_have_been_committed(log: Log, partition: int, position: Position) -> None:
    """Nothing came after the checkpoint's ledger: then the log itself must say that its last step is there.

    Raises BadSnapshot: a worker may have taken a step for committed whose outputs a broker aborted.
    """
    newest = newest_step(log, partition)
    if newest is None or newest.position[:2] != position[:2]:
        raise BadSnapshot(
            f"the last step in its ledger of partition {partition} is not in outcomes-{partition}"
        )
    if lacks_predictions(log, partition, newest):
        raise BadSnapshot(f"predictions of the last step in its ledger are not in predictions-{partition}")


def begin_ledger(
    log: Log, settings: Settings, partition: int, fold: Fold, *, from_outcomes: bool = False
) -> Ledger:
    """The ledger of a partition for which the group has no position. Raises Refused if its outputs hold work.

    `from_outcomes`: the operator has been told. If there are none, the first transaction was torn: what it left of
    predictions is kept.
    """
    ledger = Ledger(settings.labels)
    ledger.examples_next = log.low_watermark("examples", partition)
    ledger.labels_next = log.low_watermark("labels", partition)
    begins = from_outcomes and never_stepped(log, partition, newest_step(log, partition))
    for topic in () if begins else ("predictions", "outcomes"):
        if newest_record(log, topic, partition) is not None:
            hint = "" if from_outcomes else "; start with --resume-from-outcomes to go on from there"
            raise Refused(
                f"the group {settings.group!r} has no committed offset for partition {partition}, but "
                f"{topic} holds its work: the offsets were lost, or the group was renamed, and starting over "
                f"would predict every example twice{hint}"
            )
    if not begins:
        return ledger
    _log.warning("begun_at_first_records", partition=partition)
    position, limits = Position(ledger.examples_next, ledger.labels_next, ""), limits_of(fold.epochs.values())
    predictions = from_oldest(log, "predictions", partition)
    return rebuild(ledger, position, RecoveryPoint(0, 0, 0), limits, predictions, ())
