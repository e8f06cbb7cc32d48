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
from functools import partial
from typing import NamedTuple

import structlog

from mistakebound.core.checkpoint_content import Checkpoint
from mistakebound.core.faults import BadLog
from mistakebound.core.ledger.disagreement import OtherPosition
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import Epoch, encode
from mistakebound.core.model.fold import Fold
from mistakebound.core.records import OUTPUTS, Lost, Outgoing, Position, Transaction
from mistakebound.core.step.schemas import Schemas
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.core.step.state import State
from mistakebound.log.protocol import Log, Refused, Session, StaleGeneration
from mistakebound.settings import Settings
from mistakebound.worker.epochs.epochs import newest_epochs, other_pointers, refuse_changed
from mistakebound.worker.epochs.input_topics import refuse_other_topics
from mistakebound.worker.ledgers import Frozen, Start, begin_ledger, build_ledger, frozen_in, start_of
from mistakebound.worker.lost_input import deleted_unread
from mistakebound.worker.missing_predictions import find_gaps, make_good
from mistakebound.worker.registry.written import written_schemas
from mistakebound.worker.torn_steps import never_stepped, newest_step, refuse_other_tally, settled

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
    repair: dict[int, list[Outgoing]] = field(default_factory=dict)
    """Predictions that must be written again before the work goes on."""
    torn: dict[int, str] = field(default_factory=dict)
    """Partitions whose positions were torn off their outcomes, which count; in what way."""

    def repairs(self) -> Transaction | None:
        """The transaction that writes them, with the positions that their ledgers stand at."""
        if not self.repair:
            return None
        positions = {}
        for p in self.repair:
            ledger = self.state.ledgers[p]
            metadata = encode(ledger.recovery_point()).decode()
            positions[p] = Position(ledger.examples_next, ledger.labels_next, metadata)
        outputs = [each for of_partition in self.repair.values() for each in of_partition]
        return Transaction(outputs, positions)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the operator has been told and accepts. Everything that heals without a loss is done in any case."""

    lost_offsets: bool = False
    """The group's offsets were lost or moved: go on from the newest outcomes."""
    lost_input: bool = False
    """Input was deleted before it was read: go on from the oldest that is there."""
    missing_predictions: bool = False
    """Predictions of counted examples are missing: make them again, marked."""


NOTHING = Accepted()


Committed = Mapping[int, Position | None]


class Positions(NamedTuple):
    """Where the partitions stand at one moment, before anything else is read: what is read later holds all of that."""

    committed: Committed
    """By the group's offsets."""
    start: Committed
    """Where to go on: the same, or where that is accepted, the position of the newest outcomes."""


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
    accepted: Accepted = NOTHING,
    borrow: Borrow | None = None,
    schemas: Schemas | None = None,
) -> WorkerState:
    """Everything that the owner of `partitions` must hold, with the session placed to go on.

    Where the committed position and the newest outcomes are torn apart (`torn_steps.py`), the latter count.
    A borrowed ledger that does not fit the log is left alone, with a warning. `schemas`: what records may be read by; those
    that the partitions' `outcomes` hold are put there.
    Raises Refused, BadLog, Unreachable; with a checkpoint also BadSnapshot, and then any of them may be the
    checkpoint's fault. StaleGeneration where the positions moved meanwhile: others own the partitions by now, what
    was read is of two moments, and nothing is wrong with the log.
    """
    owned = sorted(partitions)
    positions: Positions | None = None
    try:
        positions = _positions(log, session, owned, accepted)
        found = _take_over(
            log, session, settings, positions, held, checkpoint, accepted, borrow, schemas or Schemas()
        )
        if _is_doubtful(found, positions) and _positions(log, session, owned, accepted) != positions:
            raise StaleGeneration("the positions moved while this worker took partitions over; poll again")
        for p, reason in found.torn.items():
            _log.warning("position_settled", partition=p, reason=reason)
        return found
    except (BadLog, Refused) as error:
        _refuse_other_inputs(log)
        if positions is not None and _positions(log, session, owned, accepted) != positions:
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


def _is_doubtful(found: WorkerState, begun: Positions) -> bool:
    """Whether what was read may be of two moments: a torn step looks like one that others committed meanwhile."""
    moved = any(begun.committed[p] != position for p, position in found.positions.items())
    return moved or any(ledger.published for ledger in found.state.ledgers.values())


def _take_over(
    log: Log,
    session: Session,
    settings: Settings,
    begun: Positions,
    held: WorkerState | None,
    checkpoint: Checkpoint | None,
    accepted: Accepted,
    borrow: Borrow | None,
    schemas: Schemas,
) -> WorkerState:
    owned, committed = list(begun.start), begun.start
    for p in owned:
        if (resumed := committed[p]) is not None and resumed != begun.committed[p]:
            _log.warning(
                "resumed_from_outcomes", partition=p, examples=resumed.examples, labels=resumed.labels
            )
    if held is not None and catch_up(log, held.fold):
        fold = held.fold
    else:
        held, fold = None, fold_updates(log, settings, checkpoint)
        _tell_kept_learner(fold, settings)
    assert fold.epoch is not None
    refuse_other_topics(log, fold.epoch)
    positions = {p: position for p in owned if (position := committed[p]) is not None}
    kept = {p for p in positions if held is not None and held.positions.get(p) == positions[p]}
    frozen = {} if checkpoint is None else frozen_in(log, checkpoint)
    starts = {p: start_of(position, frozen.get(p)) for p, position in positions.items() if p not in kept}
    borrowed = borrow(starts) if borrow is not None and starts else {}
    ledgers: dict[int, Ledger] = {}
    lost: list[Lost] = []
    repair: dict[int, list[Outgoing]] = {}
    torn: dict[int, str] = {}
    for p in owned:
        if p not in positions:
            ledgers[p] = begin_ledger(log, settings, p, fold, from_outcomes=accepted.lost_offsets)
        elif held is not None and p in kept:
            ledgers[p] = held.state.ledgers[p]
        else:
            build = partial(
                build_ledger, log, settings, p, fold=fold, own=frozen.get(p), lent=borrowed.get(p)
            )
            since = positions[p].examples
            try:
                ledgers[p] = build(positions[p])
            except OtherPosition as error:
                positions[p] = settled(log, p, positions[p], error)
                since = min(since, positions[p].examples)
                torn[p] = str(error)
                ledgers[p] = build(positions[p])
            if fold.model.reader.decodings:
                ledgers[p].schemas, schemas.written[p] = written_schemas(log, p, fold.model.epoch)
            everywhere = accepted.lost_offsets or accepted.missing_predictions or ledgers[p].missing > 0
            if everywhere or positions[p] != committed[p]:
                gaps = find_gaps(log, p, 0 if everywhere else since)
                told = accepted.missing_predictions
                if again := make_good(log, fold.model, ledgers[p], p, gaps, schemas, told=told):
                    repair[p] = again
        refuse_other_tally(log, fold.model, p, ledgers[p].tallies.epoch.updates)
        fold.model.knows(p, ledgers[p].tallies.epoch.judged)
        gone = deleted_unread(log, p, ledgers[p]) if accepted.lost_input else {}
        lost += gone.values()
        examples, labels = ledgers[p].examples_next, ledgers[p].labels_next
        session.seek(
            p,
            gone["examples"].offset + 1 if "examples" in gone else examples,
            gone["labels"].offset + 1 if "labels" in gone else labels,
        )
    limits = SizeLimits(**{topic.replace("-", "_"): log.max_record_bytes(topic) for topic in OUTPUTS})
    pointers = other_pointers(fold.epoch, settings)
    state = State(fold.model.settings, fold.model, ledgers, limits, pointers, schemas)
    return WorkerState(state, fold, positions, lost, repair, torn)


def _tell_kept_learner(fold: Fold, settings: Settings) -> None:
    kind, default = fold.model.settings.learner.kind, settings.learner.kind
    if kind != default:
        remedy = (
            "set learner.kind to say which; `mistakebound reset` shows what an epoch with the default changes"
        )
        _log.info("learner_kept", learner=kind, default=default, epoch=fold.model.epoch, remedy=remedy)


def _positions(log: Log, session: Session, owned: Sequence[int], accepted: Accepted) -> Positions:
    committed = session.committed(owned)
    if not accepted.lost_offsets:
        return Positions(committed, committed)
    return Positions(committed, {p: _from_outcomes(log, p, committed[p]) for p in owned})


def _from_outcomes(log: Log, partition: int, committed: Position | None) -> Position | None:
    """The position of the newest outcomes; `committed` where they were deleted, none where there never were any."""
    newest = newest_step(log, partition)
    if newest is None:
        return None if never_stepped(log, partition, newest) else committed
    return newest.position


def epochs_of(fold: Fold) -> list[Epoch]:
    """Every epoch read, oldest first."""
    return [fold.epochs[number] for number in sorted(fold.epochs)]
