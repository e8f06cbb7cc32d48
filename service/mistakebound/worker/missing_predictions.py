"""Predictions that are missing although `outcomes` count their examples: found, and made again when told to.

Their transaction was torn: its outcomes are in the log, its predictions were aborted. Nobody has seen them. The
examples are read and predicted again, by the present model, marked `again`. An example whose label was applied in the
meantime gets the class that was judged, without a score.

All steps are searched only where there is reason to: a rebuild counts what it reads (`core/ledger/counted.py`), and of a
ledger that a checkpoint brought whole, the newest step is looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog
from msgspec import UNSET, Raw

from mistakebound.core.faults import BadLog, BadRecord
from mistakebound.core.ledger.counted import is_unpredicted
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.offset_set import OffsetSet
from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import (
    Decision,
    Outcomes,
    Prediction,
    encode,
    read_outcomes,
    read_recovery_point,
    read_source,
)
from mistakebound.core.model.model import Model
from mistakebound.core.records import Outgoing, Record
from mistakebound.core.step.more_said import MoreSaid
from mistakebound.core.step.schemas import Schemas
from mistakebound.log.newest import newest_records
from mistakebound.log.oldest import from_oldest
from mistakebound.log.protocol import Log
from mistakebound.worker.torn_steps import WholeStep

RESOLVED = ("applied", "expired", "evicted")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Gap:
    """A partition step of which predictions are missing."""

    start: int
    stop: int
    """Its examples: from `start` to before `stop`."""
    missing: int
    unpredicted: frozenset[int]
    """Examples of it that get no prediction."""
    resolved: dict[int, Decision] = field(default_factory=dict)
    """What became of its examples since."""


def find_gaps(log: Log, partition: int, since: int = 0) -> list[Gap]:
    """Partition steps that end beyond example `since` and miss predictions. Reads all of both topics."""
    there, oldest = OffsetSet(), None
    low = log.low_watermark("predictions", partition)
    for record in log.read("predictions", partition, low):
        source = read_source(record)
        oldest = source if oldest is None else oldest
        there.add(source)
    gaps: list[Gap] = []
    for start, stop, decisions, consumed in _steps(log, partition):
        for gap in gaps:
            _note(gap, decisions)
        if stop <= since or (low > 0 and (oldest is None or start < oldest)):
            continue  # retention may have deleted these
        unpredicted = frozenset(
            each.source for each in decisions if each.source is not None and is_unpredicted(each)
        )
        found = sum(1 for source in range(start, stop) if source in there)
        missing = consumed - len(unpredicted) - found
        if missing > 0:
            gaps.append(Gap(start, stop, missing, unpredicted))
            _note(gaps[-1], decisions)
    return gaps


def lacks_predictions(log: Log, partition: int, newest: WholeStep) -> bool:
    """Whether some of the newest step are missing. Where none is, it reads no more predictions than the step has.

    A step in several parts is taken for whole: the last part does not tell how many it made.
    """
    step = newest.outcomes
    before = [read_outcomes(record) for record in newest_records(log, "outcomes", partition, 2)][:-1]
    if step.part or any(each.inputs is None for each in before):
        return False
    start = next((each.inputs.examples for each in before if each.inputs is not None), 0)
    due = sum((step.order or [])[0::2]) - sum(map(is_unpredicted, step.decisions))

    def found(predictions: Iterable[Record]) -> int:
        return sum(start <= read_source(record) < newest.position.examples for record in predictions)

    if found(newest_records(log, "predictions", partition, due)) >= due:
        return False
    point = read_recovery_point(newest.position)  # others may have been made again since
    if log.low_watermark("predictions", partition) > point.predictions:
        return False  # retention may have deleted these
    return found(log.read("predictions", partition, point.predictions)) < due


def make_good(
    log: Log,
    model: Model,
    ledger: Ledger,
    partition: int,
    gaps: Sequence[Gap],
    schemas: Schemas,
    *,
    told: bool,
) -> list[Outgoing]:
    """The predictions to be written for these gaps. Raises BadLog where there are some and the operator was not told so,
    with the way on that loses nothing more. Examples that are gone as well, or that nothing takes any more, stay unpredicted.
    """
    outputs = predict_again(log, model, ledger, partition, gaps, schemas) if gaps else []
    missing = sum(gap.missing for gap in gaps)
    if outputs and not told:
        raise BadLog(
            f"outcomes-{partition} counts {missing} examples between offsets {gaps[0].start} and {gaps[-1].stop - 1} "
            f"whose predictions are not in predictions-{partition}: a transaction was torn, and nobody has seen them. "
            "Start with --predict-missing: they are predicted again, marked `again`, and wait for their labels"
        )
    if gaps:
        _log.warning("predicted_again", partition=partition, predictions=len(outputs), missing=missing)
    return outputs


def predict_again(
    log: Log, model: Model, ledger: Ledger, partition: int, gaps: Sequence[Gap], schemas: Schemas
) -> list[Outgoing]:
    """The missing predictions, by the present model; the ledger holds those examples that wait from now on."""
    outputs: list[Outgoing] = []
    waiting = dict(ledger.waiting)
    """A checkpoint may hold some of them: its worker took their step for committed."""
    point = ledger.recovery_point()

    def known(schema_id: str) -> SchemaText | None:
        return schemas.known(partition, schema_id, ledger.schemas)

    more_said = MoreSaid(model, ledger.tallies)
    for gap in gaps:
        for record in _unseen(log, partition, gap):
            try:
                record_id, raw, tenant = model.reader.example(record, known)
                x = model.features(raw, tenant)
                score = model.score(x)
            except BadRecord:  # taken by the rules of an older epoch
                continue
            decision = gap.resolved.get(record.offset)
            held = waiting.get(record_id)
            if decision is None and (
                record_id in ledger.remembered if held is None else held.source != record.offset
            ):
                continue  # another example of this id was predicted, as if it were the first
            judged = decision is not None and decision.outcome == "applied"
            predicted = decision.prediction if decision is not None and judged else model.predict(score)
            one, many = (score, UNSET) if isinstance(score, float) else (UNSET, score)
            prediction = Prediction(
                id=record_id,
                prediction=predicted,
                score=UNSET if judged else one,
                scores=UNSET if judged else many,
                features=Raw(raw),
                source=record.offset,
                at=ledger.stream_time,
                model=model.version(),
                tenant=UNSET if tenant is None else tenant,
                again=True,
            )
            if prediction.score is not UNSET:
                prediction = more_said.said(prediction, prediction.score, x)
            outputs.append(Outgoing("predictions", partition, record.key, encode(prediction), record.headers))
            if decision is None:
                waiting[record_id] = Waiting(
                    record_id, record.offset, ledger.stream_time, predicted, model.epoch, raw,
                    point.predictions, point.outcomes, model.folded(), Beside.of(prediction), tenant,
                )  # fmt: skip
    in_order = sorted(waiting.values(), key=lambda entry: entry.source)
    ledger.restore(in_order, list(ledger.parked.values()))
    return outputs


def _steps(log: Log, partition: int) -> Iterator[tuple[int, int, list[Decision], int]]:
    """Of each whole partition step: its first example, the next step's, its decisions, and how many it consumed."""
    low = log.low_watermark("outcomes", partition)
    start: int | None = 0 if low == 0 else None
    decisions: list[Decision] = []
    for record in log.read("outcomes", partition, low):
        part: Outcomes = read_outcomes(record)
        decisions = [*(decisions if part.part else ()), *part.decisions]
        if part.inputs is None:
            continue
        if start is not None:
            yield start, part.inputs.examples, decisions, sum((part.order or [])[0::2])
        start = part.inputs.examples


def _note(gap: Gap, decisions: Sequence[Decision]) -> None:
    for each in decisions:
        if each.source is not None and gap.start <= each.source < gap.stop and each.outcome in RESOLVED:
            gap.resolved[each.source] = each


def _unseen(log: Log, partition: int, gap: Gap) -> Iterator[Record]:
    """Examples of the gap whose predictions are missing, as far as the log still holds them."""
    there = OffsetSet()
    for record in from_oldest(log, "predictions", partition):
        there.add(read_source(record))
    low, high = log.low_watermark("examples", partition), log.high_watermark("examples", partition)
    start, stop = max(gap.start, low), min(gap.stop, high)
    for record in log.read("examples", partition, start, stop) if start < stop else ():
        if record.offset not in there and record.offset not in gap.unpredicted:
            yield record
