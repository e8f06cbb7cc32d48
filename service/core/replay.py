"""A recorded stream, or labelled data as a stream, through the worker's own step, without a log."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from service.core.ledger import Ledger
from service.core.merge import Merge, Side
from service.core.messages import encode
from service.core.model import Model
from service.core.records import INPUTS, Record, Topic
from service.core.report import PartitionCounts, Report, report, summary
from service.core.standing import certificate, standing
from service.core.state import State
from service.core.step import Step, step
from service.settings import Settings

EVERYTHING = 2**62


class Row(NamedTuple):
    """One labelled example of a file."""

    id: str
    features: Any
    """As JSON values."""
    label: Any


def fresh(settings: Settings, partitions: int) -> State:
    """A worker's state before its first record, owning every partition."""
    return State(
        settings, Model(settings, partitions), {p: Ledger(settings.labels) for p in range(partitions)}
    )


def replay_records(
    records: Iterable[Record],
    settings: Settings,
    partitions: int,
    progress: Callable[[State], None] | None = None,
    taken: Callable[[Step], None] | None = None,
) -> State:
    """Replay a complete stream: its inputs in record-time order, partition by partition in each step.

    `taken` is shown every step.
    """
    state = fresh(settings, partitions)
    merge = Merge(range(partitions), capacity=EVERYTHING)
    merge.add(record for record in records if record.topic in INPUTS)
    while (done := step(state, merge, _all_sides(partitions), settings.batch.max_records)) is not None:
        if taken is not None:
            taken(done)
        if progress is not None:
            progress(state)
    return state


def replay_rows(
    rows: Iterable[Row],
    settings: Settings,
    partitions: int,
    delay: int = 0,
    progress: Callable[[State], None] | None = None,
    taken: Callable[[Step], None] | None = None,
    state: State | None = None,
) -> State:
    """Replay labelled rows: `delay` examples are outstanding when an example is predicted.

    0 is the textbook protocol. A step closes after each record, so that figures are the same at any
    partition count; labels still outstanding at the end are applied. `taken` is shown every step; `state`
    goes on from one with empty ledgers instead of a fresh one.
    """
    if state is None:
        state = fresh(settings, partitions)
    merge = Merge(range(partitions), capacity=EVERYTHING)
    drained = _all_sides(partitions)
    for record in as_stream(rows, settings, partitions, delay):
        merge.add((record,))
        done = step(state, merge, drained, EVERYTHING)
        if taken is not None and done is not None:
            taken(done)
        if progress is not None:
            progress(state)
    return state


def in_turn(number: int, key: bytes, partitions: int) -> int:  # noqa: ARG001 - one way to place a row
    """Rows dealt to the partitions one after the other."""
    return number % partitions


def as_stream(
    rows: Iterable[Row],
    settings: Settings,
    partitions: int,
    delay: int,
    place: Callable[[int, bytes, int], int] = in_turn,
) -> Iterator[Record]:
    """Rows as examples and late labels, 1 ms of record time apart.

    `place(number, key, partitions)` says in which partition a row's example and label are.
    """
    outstanding: deque[tuple[int, bytes, Row]] = deque()
    ends: Counter[Side] = Counter()
    now = 0
    messages = settings.messages

    def record(topic: Topic, partition: int, key: bytes, values: dict[str, Any]) -> Record:
        offset = ends[topic, partition]
        ends[topic, partition] += 1
        return Record(topic, partition, offset, now, key, encode(_nested(values)))

    def late() -> Record:
        partition, key, row = outstanding.popleft()
        return record("labels", partition, key, {messages.id: row.id, messages.label: row.label})

    for number, row in enumerate(rows):
        now += 1
        key = row.id.encode()
        partition = place(number, key, partitions)
        yield record("examples", partition, key, {messages.id: row.id, messages.features: row.features})
        outstanding.append((partition, key, row))
        if len(outstanding) > delay:
            now += 1
            yield late()
    while outstanding:
        now += 1
        yield late()


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    """JSON pointers to a nested object."""
    whole: dict[str, Any] = {}
    for pointer, value in values.items():
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
        place = whole
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return whole


def _all_sides(partitions: int) -> Collection[Side]:
    return {(topic, p) for topic in INPUTS for p in range(partitions)}


def report_of(state: State) -> Report:
    """The report of a worker's whole state."""
    counts = [
        PartitionCounts(ledger.tallies.life, len(ledger.waiting), len(ledger.parked))
        for ledger in state.ledgers.values()
    ]
    model = state.model
    epoch = [ledger.tallies.epoch for ledger in state.ledgers.values()]
    return report(
        counts, state.settings.learner.kind, summary(model), standing(model, epoch), certificate(model)
    )
