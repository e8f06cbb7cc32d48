"""A recorded stream, or labelled data as a stream, through the worker's own step, without a log."""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Raw

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.inputs import InputReader, pointer_keys
from mistakebound.core.messages.schema import encode
from mistakebound.core.model.model import Model
from mistakebound.core.records import INPUTS, Record, Topic, TopicPartition
from mistakebound.core.reporting.report import PartitionCounts, Rejected, Report, report, summary
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step, step
from mistakebound.core.theorems.asked import expected_mistakes
from mistakebound.core.theorems.changes import proved_changes
from mistakebound.core.theorems.claims import certificate, claims
from mistakebound.settings import Settings

EVERYTHING = 2**62
LONGEST_RUN = 4_096
"""Records of labelled data in one step: more would not be faster, only larger."""
LARGEST_RUN_BYTES = 1_048_576
"""A step ends after this many, too, so that rows may be large and memory small."""


class Row(NamedTuple):
    """One labelled example of a file."""

    id: str
    features: Any
    """As JSON values, or as their text (`msgspec.Raw`)."""
    label: Any
    line: int | None = None
    """The line of the file on which the row begins."""
    tenant: Any = None
    """As a JSON value, where `features.cross` points outside the features."""


def fresh(settings: Settings, partitions: int) -> State:
    """A worker's state before its first record, owning every partition."""
    ledgers = {p: Ledger(settings.labels) for p in range(partitions)}
    return State(settings, Model(settings, partitions), ledgers)


def replay_records(
    records: Iterable[Record],
    settings: Settings,
    partitions: int,
    progress: Callable[[State], None] | None = None,
    taken: Callable[[Step], None] | None = None,
    schemas: Mapping[str, SchemaText | None] | None = None,
) -> State:
    """Replay a complete stream: its inputs in record-time order, partition by partition in each step.

    `taken` is shown every step. `schemas`: by id, those that records name where they are not JSON.
    """
    state = fresh(settings, partitions)
    state.schemas.fetched.update(schemas or {})
    merge = Merge(range(partitions), capacity=EVERYTHING)
    merge.add(record for record in records if record.topic in INPUTS)
    while (done := step(state, merge, _all_inputs(partitions), settings.batch.max_records)) is not None:
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
    longest_run: int = LONGEST_RUN,
) -> State:
    """Replay labelled rows: `delay` examples are outstanding when an example is predicted.

    0 is the textbook protocol. A step takes records of one partition only, in their order and at most
    `longest_run`, so that figures are the same at any partition count and any length of runs; labels still
    outstanding at the end are applied. `taken` and `progress` are shown every step; `state` goes on from one
    with empty ledgers instead of a fresh one.
    """
    if state is None:
        state = fresh(settings, partitions)
    if state.model.reader.decodings:
        state.model.reader = reader_of_rows(settings)
    merge = Merge(range(partitions), capacity=EVERYTHING)
    drained = _all_inputs(partitions)
    for run in _runs(as_stream(rows, settings, partitions, delay), longest_run):
        merge.add(run)
        while (done := step(state, merge, drained, EVERYTHING)) is not None:
            if taken is not None:
                taken(done)
            if progress is not None:
                progress(state)
    return state


def reader_of_rows(settings: Settings) -> InputReader:
    """What reads messages made of labelled data: they are JSON, whatever the topics hold."""
    return InputReader(settings.messages.of_rows(), settings.labels, settings.features)


def _runs(stream: Iterable[Record], longest: int) -> Iterator[list[Record]]:
    """The stream in runs of one partition each; short ones first, since progress is reported after each.

    With one partition and no delay, 1, 2, 4, 8 ... rows have been replayed after them.
    """
    done = 0
    for _, same in groupby(stream, attrgetter("partition")):
        while run := _take(same, min(longest, max(2, done))):
            done += len(run)
            yield run


def _take(stream: Iterator[Record], most: int) -> list[Record]:
    run: list[Record] = []
    size = 0
    for record in islice(stream, most):
        run.append(record)
        size += len(record.value or b"")
        if size >= LARGEST_RUN_BYTES:
            break
    return run


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
    offsets: defaultdict[TopicPartition, count[int]] = defaultdict(count)
    times = count(1)
    messages = settings.messages
    tenant = tenants_own_place(settings)
    label = _members(messages.id, messages.label)
    example = (
        _members(messages.id, messages.features, *(() if tenant is None else (tenant,)))
        if messages.features
        else _features_alone
    )

    def record(topic: Topic, partition: int, key: bytes, value: bytes) -> Record:
        return Record(topic, partition, next(offsets[topic, partition]), next(times), key, value)

    def late() -> Record:
        partition, key, row = outstanding.popleft()
        return record("labels", partition, key, label(row.id, row.label))

    for number, row in enumerate(rows):
        key = row.id.encode()
        partition = place(number, key, partitions)
        tenants = () if tenant is None else (row.tenant,)
        yield record("examples", partition, key, example(row.id, row.features, *tenants))
        outstanding.append((partition, key, row))
        if len(outstanding) > delay:
            yield late()
    while outstanding:
        yield late()


def tenants_own_place(settings: Settings) -> str | None:
    """Where an example has its tenant beside its features; None where it has none, or one of the features is it."""
    cross, within = settings.features.cross, settings.messages.features
    return None if cross is None or cross.startswith(within + "/") else cross


def _features_alone(record_id: str, features: Any) -> bytes:  # noqa: ARG001 - the record's key is the id
    """An example that is nothing but its features."""
    return encode(features)


def _members(*pointers: str) -> Callable[..., bytes]:
    """What writes so many values as a JSON object that has them at these pointers."""
    whole: dict[str, Any] = {}
    for number, pointer in enumerate(pointers):
        *path, last = pointer_keys(pointer)
        place = whole
        for part in path:
            place = place.setdefault(part, {})
        place[last] = Raw(bytes([number]))  # in no JSON text
    begin, *rest = re.split(rb"([\0-\x1f])", encode(whole))
    if len(pointers) == 2:  # nearly always, and twice for each row
        first, between, second, end = rest
        one, other = first[0], second[0]
        return lambda *values: begin + encode(values[one]) + between + encode(values[other]) + end
    after = [(place[0], text) for place, text in zip(rest[::2], rest[1::2], strict=True)]
    return lambda *values: begin + b"".join(encode(values[place]) + text for place, text in after)


def _all_inputs(partitions: int) -> Collection[TopicPartition]:
    return {(topic, p) for topic in INPUTS for p in range(partitions)}


def report_of(state: State, rejected: tuple[Rejected, ...] = ()) -> Report:
    """The report of a worker's whole state, and of what a replay could not use."""
    model, kind, ledgers = state.model, state.settings.learner.kind, state.ledgers.values()
    tallies = [one.tallies.epoch for one in ledgers]
    bounds, expected = claims(model, tallies), expected_mistakes(model, tallies)
    counts = [
        PartitionCounts(one.tallies.life, len(one.waiting), len(one.parked), one.tallies.epoch, one.tallies)
        for one in ledgers
    ]
    margin, proved = certificate(model), proved_changes(model)
    of_model = summary(model), bounds, margin
    return report(counts, kind, *of_model, rejected, expected, model.classes, proved, state.costs)
