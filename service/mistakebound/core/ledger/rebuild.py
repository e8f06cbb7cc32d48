"""Read back from positions and logs the state that a worker held.

Nothing is inferred. Predictions say which examples wait, recorded decisions say what became of them; both are
applied in log order to an empty ledger, or to one from a checkpoint. Reading from further back than
needed is always safe: an entry leaves by its own offset, and memory is first-in first-out, under the limit that each
epoch had.

`outcomes` are read first. Of a resolved example only its offset is noted, in one bit, and of its prediction then no more
than that offset is read, so that never more is held than in the end.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import UNSET

from mistakebound.core.faults import BadLog
from mistakebound.core.ledger.counted import Counted
from mistakebound.core.ledger.disagreement import OtherPosition
from mistakebound.core.ledger.entries import Parked, Published, Shared, Waiting
from mistakebound.core.ledger.label_outcomes import OF_EXAMPLES, OF_LABELS
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.offset_set import OffsetSet
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.labels import Carried
from mistakebound.core.messages.schema import (
    Decision,
    Outcomes,
    RecoveryPoint,
    read_outcomes,
    read_prediction,
    read_source,
)
from mistakebound.core.records import Position, Record

NEAR, NEAR_MS = 256, 1_000
"""Offsets, and ms of stream time. Predictions within both share one floor object, hardly lower than their own offset: a
number of its own would take 32 bytes of each entry."""


def rebuild(
    ledger: Ledger,
    position: Position,
    recovery_point: RecoveryPoint,
    limits: Mapping[int, int],
    predictions: Iterable[Record],
    outcomes: Iterable[Record],
    made_in: int = 0,
) -> Ledger:
    """Bring `ledger` (empty, or a checkpoint's) to the committed position.

    `predictions` and `outcomes` begin at the recovery point (or the checkpoint's end) and go to the high watermark;
    both are read once, `outcomes` first. `limits`: of every epoch how many ids it remembers; the newest is the present
    one. `made_in`: the epoch of a checkpoint's ledger. Raises OtherPosition where the newest whole outcomes end
    elsewhere, and BadLog. Predictions beyond the position are kept in `ledger.published`; if some before it are not there,
    `ledger.missing` says how many.
    """
    resolved = OffsetSet()
    parked = {entry.offset: entry for entry in ledger.parked.values()}
    epochs = _Epochs(ledger, limits, made_in)
    if made_in:
        counted = Counted(ledger.examples_next, ledger.examples_next)
    else:
        counted = Counted(recovery_point.source, None if recovery_point.outcomes else 0)
    decided = _apply_outcomes(outcomes, ledger, position, resolved, parked, epochs, counted)
    counted.close()
    epochs.enter(present := max(limits))
    last = decided.last
    if last is not None:
        _check(decided.location, last, position, decided.passed)
        if last.at is None or last.tallies is None:
            raise BadLog(f"the newest outcomes record has no time or no tallies; {_ONLY}")
        ledger.stream_time, ledger.tallies = last.at, last.tallies
        if last.model.epoch != present:
            ledger.tallies.begin_epoch()
    elif not decided.passed:
        raise OtherPosition(
            "no outcomes record reaches to the group's offsets: `outcomes` was deleted, or made anew; restore "
            "it, or take another log.prefix and replay the inputs there"
        )
    _apply_predictions(predictions, ledger, position, recovery_point, resolved, counted, parked)
    ledger.outcomes_end = decided.end
    ledger.examples_next, ledger.labels_next = position.examples, position.labels
    return ledger


_ONLY = "only the worker may write this topic"


class _Decided(NamedTuple):
    """What the outcomes came to."""

    last: Outcomes | None
    """The newest whole partition step's last part."""
    location: str
    passed: bool
    """Whether a step ends at the position, or it stood there before."""
    end: int


class _Epochs:
    """Each epoch's limit of remembered ids, in their order."""

    def __init__(self, ledger: Ledger, limits: Mapping[int, int], made_in: int) -> None:
        self._ledger = ledger
        self._left = [(epoch, limits[epoch]) for epoch in sorted(limits, reverse=True) if epoch >= made_in]
        self.enter(made_in)

    def enter(self, epoch: int) -> None:
        """What follows is of this epoch. Those before it forgot when they began, even where they never worked."""
        while self._left and self._left[-1][0] <= epoch:
            self._ledger.limit_memory(self._left.pop()[1])


def _apply_outcomes(
    outcomes: Iterable[Record],
    ledger: Ledger,
    position: Position,
    resolved: OffsetSet,
    parked: dict[int, Parked],
    epochs: _Epochs,
    counted: Counted,
) -> _Decided:
    """Apply whole partition steps. Parts without a last one are of a torn transaction, whose step was made again."""
    last: Outcomes | None = None
    location, end = "", ledger.outcomes_end
    passed = _stands_at(ledger.examples_next, ledger.labels_next, position)
    parts: list[tuple[Record, Outcomes]] = []
    for record in outcomes:
        part = read_outcomes(record)
        end = record.offset + 1
        if part.part == 0:
            parts.clear()
        parts.append((record, part))
        if part.inputs is None:
            continue
        epochs.enter(part.model.epoch)
        for its_record, its in parts:
            offset: Shared = its_record.offset
            try:
                for decision in its.decisions:
                    _apply(decision, offset, ledger, resolved, parked)
            except BadLog as error:
                raise BadLog(f"{its_record.location}: {error}; {_ONLY}") from None
        counted.step(part, (its for _, its in parts))
        parts.clear()
        ledger.keep()
        last, location = part, record.location
        passed = passed or _stands_at(part.inputs.examples, part.inputs.labels, position)
    return _Decided(last, location, passed, end)


def _apply(
    decision: Decision, offset: Shared, ledger: Ledger, resolved: OffsetSet, parked: dict[int, Parked]
) -> None:
    """Do what the table says. Raises BadLog for a decision that the worker never writes."""
    record_id, source, label, label_offset = (
        decision.id,
        decision.source,
        decision.label,
        decision.label_offset,
    )
    effects = OF_EXAMPLES if label_offset is None else OF_LABELS
    try:
        effect = effects[decision.outcome]
    except KeyError:
        raise BadLog(f"{decision} is not one that the worker makes") from None
    if effect.needs is not None and None in effect.needs(decision):
        raise BadLog(f"{decision} lacks what such a decision has")
    if effect.parks:
        assert record_id is not None
        assert label_offset is not None
        assert label is not None
        assert decision.at is not None
        raw = decision.features
        carried = None if raw is UNSET else Carried(bytes(raw), decision.prediction, decision.tenant)
        parked[label_offset] = Parked(record_id, label_offset, label, decision.at, offset, carried)
    if effect.ends_waiting:
        assert source is not None
        resolved.add(source)
    if effect.unparks:
        assert label_offset is not None
        parked.pop(label_offset, None)
    if effect.remembers:
        assert record_id is not None
        ledger.remember(record_id, label, offset)


def _apply_predictions(
    predictions: Iterable[Record],
    ledger: Ledger,
    position: Position,
    recovery_point: RecoveryPoint,
    resolved: OffsetSet,
    counted: Counted,
    parked: Mapping[int, Parked],
) -> None:
    """Hold what waits: examples that are predicted and not resolved, and these parked labels."""
    held = {entry.source: entry for entry in ledger.waiting.values() if entry.source not in resolved}
    newest = max(held, default=-1)
    floors = (entry.predictions_floor for entry in held.values())
    lowest: Shared = min(floors, default=recovery_point.predictions)
    floor: Shared = -NEAR
    outcomes_floor: Shared = recovery_point.outcomes
    updates: Shared = 0
    floor_at = found = 0
    end = ledger.predictions_end
    published: dict[int, Published] = {}
    for record in predictions:
        source = read_source(record)
        end = record.offset + 1
        if counted.first <= source < counted.end:
            found += 1
        if source < recovery_point.source or source in resolved:
            continue
        message = read_prediction(record)
        folded = sum(message.model.updates)
        if source >= position.examples:
            first = next(iter(published.values())).floor if published else record.offset
            epoch, beside = message.model.epoch, Beside.of(message)
            published[source] = Published(message.at, message.prediction, epoch, folded, first, beside)
            continue
        if record.offset - floor >= NEAR or abs(message.at - floor_at) >= NEAR_MS:
            floor, floor_at = record.offset, message.at
        # One that was made again lies behind those of later examples, and these must be found by its floor, too.
        its_floor = lowest if source < newest else floor
        newest = max(newest, source)
        if folded != updates:
            updates = folded
        held[source] = Waiting(
            message.id,
            source,
            message.at,
            message.prediction,
            message.model.epoch,
            bytes(message.features),
            its_floor,
            outcomes_floor,
            updates,
            Beside.of(message),
            None if message.tenant is UNSET else message.tenant,
        )
    waiting = sorted(held.values(), key=lambda entry: entry.source)
    held.clear()  # with a million examples it is as large as the ledger will be
    ledger.restore(waiting, parked.values())
    ledger.missing = counted.missing(found)
    if published:  # they must be read again until their examples are counted
        end = next(iter(published.values())).floor
        ledger.published, ledger.published_end = published, max(published) + 1
    ledger.predictions_end = end


def _stands_at(examples: int, labels: int, position: Position) -> bool:
    return examples == position.examples and labels == position.labels


def _check(location: str, last: Outcomes, position: Position, passed: bool) -> None:
    inputs = last.inputs
    if inputs is None or not _stands_at(inputs.examples, inputs.labels, position):
        raise OtherPosition(
            f"{location}, the newest record, ends at {inputs}, but the group's offsets are "
            f"{position.examples} and {position.labels}; "
            "somebody has moved the offsets of this group; start with --resume-from-outcomes to go on from "
            "the former",
            passed=passed,
        )
