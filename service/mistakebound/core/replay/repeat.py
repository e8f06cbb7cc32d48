"""A recording's work done again, as it was done: the worker's own partition step, in the recorded order.

1. Each partition step begins with a model of the version that it began with, consumes what it consumed in that order, and
   ends where it ended. So tallies, ids that wait and model come out as they did, whatever the number of partitions and
   workers, their batches and their faults: of a worker that died only what it had committed is there.
2. Every decision is made again, none is copied, and must be the recorded one. How large a record the log took only the
   worker knew: that alone is taken from the recording.
3. A partition step waits until the updates that its model had folded are made. They are made here; `updates` serve where
   they are of work that the recording was too early for, and for what an epoch is based on.
4. An epoch begins once all work of the one before it is done, as `reset` has it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from heapq import heappop, heappush
from itertools import groupby, product, takewhile

from msgspec import UNSET

from mistakebound.core.learners.requirements import of_epoch
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.limits import limits_of
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.messages.schema import Decision, Epoch, Update, Version, encode, read_update
from mistakebound.core.messages.tallies import Tallies, Tally
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import Model
from mistakebound.core.records import INPUTS, Record, Topic, Transaction
from mistakebound.core.replay.recorded import NotAsRecorded, Recorded, RecordedStep
from mistakebound.core.replay.replay import EVERYTHING
from mistakebound.core.replay.versions import Versions
from mistakebound.core.step.draft import Draft
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.partition_step import PartitionStep
from mistakebound.core.step.schemas import Schemas
from mistakebound.core.step.sizes import SizeLimits, Sizes
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import OF_EPOCH, LabelSettings, MessageSettings, Settings

ANY_SIZE = SizeLimits(EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING)
NO_SIZE = SizeLimits(0, 0, 0, 0)

Progress = Callable[[State], None]
Taken = Callable[[Step], None]


def repeat(
    recorded: Recorded, settings: Settings, progress: Progress | None = None, taken: Taken | None = None
) -> State:
    """Do the recorded work again; `taken` is shown each partition step, as a step of its own.

    `settings` are those of the newest epoch; an older one has those that it recorded. Raises NotAsRecorded, BadLog.
    """
    epochs = recorded.epochs()
    newest = max(epochs, default=1)
    ledgers: dict[int, Ledger] = {}
    number, work, limits = 0, None, limits_of(epochs.values())
    while number != newest:
        heads = [head for p in range(recorded.partitions) if (head := recorded.head(p)) is not None]
        before, number = number, min((head.model.epoch for head in heads), default=newest)
        idle = [limits[epoch] for epoch in sorted(limits) if before < epoch < number]
        for ledger, limit in product(ledgers.values(), idle):
            ledger.limit_memory(limit)
        of_epoch = settings if number == newest else _settings_of(epochs.get(number), number, settings)
        for p in range(recorded.partitions):
            ledgers[p] = _under(of_epoch.labels, ledgers.get(p))
        fresh = partial(_fresh, recorded, of_epoch, number, epochs)
        work = _Epoch(
            recorded, of_epoch, number, Versions(fresh, recorded.partitions), ledgers, progress, taken
        )
        work.run()
    assert work is not None
    return work.end()


def settings_of(epoch: Epoch, settings: Settings) -> Settings:
    """What the epoch fixed, the pointers that it began with, and everything else of `settings`.

    Raises ValueError where the former is not valid.
    """
    rest = settings.model_dump(exclude=set(OF_EPOCH))
    if epoch.messages is not UNSET:
        rest["messages"] = epoch.messages
    return Settings.model_validate({**rest, **epoch.settings})


def _settings_of(epoch: Epoch | None, number: int, settings: Settings) -> Settings:
    if epoch is None:
        raise NotAsRecorded(f"epoch {number}", "`updates` hold no settings of it")
    try:
        found = settings_of(epoch, settings)
    except ValueError as error:
        raise NotAsRecorded(f"epoch {number}", f"its settings are not valid: {error}") from None
    if wrong := of_epoch(found):
        raise NotAsRecorded(f"epoch {number}", f"its settings are not valid: {'; '.join(wrong)}")
    return found


def _fresh(recorded: Recorded, settings: Settings, number: int, epochs: dict[int, Epoch]) -> Model:
    """A model before the epoch's first update, with what the epoch is based on."""
    known = [epoch for epoch in epochs.values() if epoch.epoch <= number]
    if not known or epochs[number].base is None:
        return Model(settings, recorded.partitions, number)
    fold = Fold(settings, recorded.partitions, known)
    for p, records in enumerate(recorded.updates):
        fold.fold(p, takewhile(lambda record: read_update(record).epoch < number, records))
    fold.must_be_whole()
    return fold.model


def _under(rules: LabelSettings, before: Ledger | None) -> Ledger:
    """What a partition holds when an epoch begins: all that it held, under the rules of the new one."""
    ledger = Ledger(rules)
    if before is not None:
        for entry in before.remembered.values():
            ledger.remember(entry.id, entry.label, entry.outcomes_floor)
        ledger.restore(before.waiting.values(), before.parked.values())
        ledger.stream_time, ledger.tallies = before.stream_time, before.tallies
        ledger.tallies.begin_epoch()
        ledger.examples_next, ledger.labels_next = before.examples_next, before.labels_next
    return ledger


class _Epoch:
    """The partition steps of one epoch."""

    def __init__(
        self,
        recorded: Recorded,
        settings: Settings,
        number: int,
        versions: Versions,
        ledgers: dict[int, Ledger],
        progress: Progress | None,
        taken: Taken | None,
    ) -> None:
        self._recorded, self._settings, self._number = recorded, settings, number
        self._versions, self._ledgers = versions, ledgers
        self._progress, self._taken = progress, taken
        self._schemas = [Schemas() for _ in range(recorded.partitions)]
        self._made = [0] * recorded.partitions
        """Updates of each partition."""
        self._ready: list[tuple[int, int]] = []
        """(place, partition) of next partition steps that can be done."""
        self._waiting: list[list[tuple[int, int]]] = [[] for _ in range(recorded.partitions)]
        """By partition: (how many of its updates must be there, partition whose next step waits for that)."""

    def run(self) -> None:
        """Do all of them. Raises NotAsRecorded, BadLog."""
        for p in range(self._recorded.partitions):
            self._look(p)
        while self._ready or self._fill_in():
            _, p = heappop(self._ready)
            self._do(p)
            self._recorded.take(p)
            self._look(p)
            self._wake(p)

    def end(self) -> State:
        """What a worker that owns every partition holds after the last of them."""
        model = self._versions.at(Version(self._number, self._made))
        for p, ledger in self._ledgers.items():
            model.knows(p, ledger.tallies.epoch.judged)
        return State(self._settings, model, self._ledgers, ANY_SIZE)

    # --- whose turn it is -------------------------------------------------------------------------

    def _look(self, partition: int) -> None:
        """Put the partition's next step where it belongs: ready, or waiting for an update."""
        head = self._recorded.head(partition)
        if head is None or head.model.epoch != self._number:
            if head is not None and head.model.epoch < self._number:
                raise NotAsRecorded(head.place, f"it is of epoch {head.model.epoch}, which is over")
            return
        if len(head.model.updates) != self._recorded.partitions:
            raise NotAsRecorded(head.place, f"its version has {len(head.model.updates)} partitions")
        if head.model.updates[partition] != self._made[partition]:
            began, made = head.model.updates[partition], self._made[partition]
            raise NotAsRecorded(
                head.place, f"it began with {began} updates of its partition, there are {made}"
            )
        for q, n in enumerate(head.model.updates):
            if n > len(self._versions.updates[q]):
                heappush(self._waiting[q], (n, partition))
                return
        heappush(self._ready, (head.line, partition))

    def _wake(self, partition: int) -> None:
        """The partition may have more updates now."""
        waiting, there = self._waiting[partition], len(self._versions.updates[partition])
        while waiting and waiting[0][0] <= there:
            self._look(heappop(waiting)[1])

    def _fill_in(self) -> bool:
        """Nothing is ready: where partition steps wait for one that the recording was too early for, take what it wrote.

        Returns whether any is ready now. Raises NotAsRecorded where some wait for what is not there.
        """
        for q, waiting in enumerate(self._waiting):
            head = self._recorded.head(q)
            if waiting and (head is None or head.model.epoch != self._number):
                self._versions.updates[q] += self._later(q, len(self._versions.updates[q]))
                self._wake(q)
        if not self._ready and any(self._waiting):
            q = next(q for q, waiting in enumerate(self._waiting) if waiting)
            n, p = self._waiting[q][0]
            head = self._recorded.head(p)
            place = f"outcomes-{p}" if head is None else head.place
            raise NotAsRecorded(
                place, f"its model had update {n} of partition {q}, which no partition step makes"
            )
        return bool(self._ready)

    def _later(self, partition: int, after: int) -> Iterator[Update]:
        for record in self._recorded.updates[partition]:
            message = read_update(record)
            if isinstance(message, Update) and message.epoch == self._number and message.n == after + 1:
                after += 1
                yield message

    # --- one partition step -----------------------------------------------------------------------

    def _do(self, partition: int) -> None:
        head = self._recorded.head(partition)
        assert head is not None
        model, ledger = self._versions.at(head.model), self._ledgers[partition]
        model.knows(partition, ledger.tallies.epoch.judged)
        schemas, facts = self._schemas[partition], StepFacts()
        schemas.fetched = {**head.schemas}
        state = State(self._settings, model, self._ledgers, ANY_SIZE, schemas=schemas)
        step = PartitionStep(state, partition, facts)
        if head.messages is not None:
            step.draft.reader = _reader(head, self._settings)
        self._consume(step, head)
        # A step may close between expiries, before the record that caused them.
        ledger.stream_time = max(ledger.stream_time, head.at)
        step.clear_away(len(head.decisions) - len(step.draft.decisions), EVERYTHING)
        outputs = []  # type: ignore[var-annotated]
        position = step.close(outputs)
        _compare(head, step.draft)
        for output in outputs:
            if output.topic == "updates":
                message = read_update(Record(output.topic, partition, 0, 0, output.key, output.value))
                assert isinstance(message, Update)
                self._versions.updates[partition].append(message)
                self._made[partition] += 1
        if self._taken is not None:
            consumed, totals = sum(head.order), {partition: state.totals(partition)}
            self._taken(Step(Transaction(outputs, {partition: position}), facts, totals, consumed))
        if self._progress is not None:
            self._progress(state)

    def _consume(self, step: PartitionStep, head: RecordedStep) -> None:
        draft = step.draft
        merge = Merge([draft.partition], EVERYTHING, EVERYTHING)
        fits, refused = draft.sizes, Sizes(draft.model, NO_SIZE)
        invalid = {
            ("examples", decision.source)
            if decision.label_offset is None
            else ("labels", decision.label_offset)
            for decision in head.decisions
            if decision.outcome == "invalid"
        }
        for run, count in enumerate(head.order):
            topic = INPUTS[run % 2]
            drained = {(INPUTS[(run + 1) % 2], draft.partition)}
            records = self._next(topic, draft.partition, count, head.place)
            for is_invalid, same in groupby(records, lambda record: (record.topic, record.offset) in invalid):
                draft.sizes = refused if is_invalid else fits
                merge.add(same)
                step.run(merge, drained, EVERYTHING, EVERYTHING)
        draft.sizes = fits

    def _next(self, topic: Topic, partition: int, count: int, place: str) -> list[Record]:
        queue = self._recorded.inputs[topic, partition]
        if count > len(queue):
            raise NotAsRecorded(
                place, f"it consumed {count} {topic}, of which the recording holds {len(queue)}"
            )
        return [queue.popleft() for _ in range(count)]


def _reader(head: RecordedStep, settings: Settings) -> InputReader:
    """By the step's own pointers."""
    try:
        messages = MessageSettings.model_validate(head.messages)
    except ValueError as error:
        raise NotAsRecorded(head.place, f"its pointers are not valid: {error}") from None
    return InputReader(messages, settings.labels, settings.features)


def _compare(head: RecordedStep, draft: Draft) -> None:
    """Raises NotAsRecorded where this partition step came to something else."""
    for made, recorded in zip(draft.decisions, head.decisions, strict=False):
        if made != recorded:
            raise NotAsRecorded(head.place, f"decision {_shown(recorded)} should be {_shown(made)}")
    if len(draft.decisions) != len(head.decisions):
        raise NotAsRecorded(
            head.place, f"it has {len(head.decisions)} decisions, should have {len(draft.decisions)}"
        )
    if draft.ledger.stream_time != head.at:
        raise NotAsRecorded(head.place, f"its stream time is {head.at}, should be {draft.ledger.stream_time}")
    for name, counted, tally in (
        ("life", draft.ledger.tallies.life, head.tallies.life),
        ("the epoch", draft.ledger.tallies.epoch, head.tallies.epoch),
    ):
        if (counts := _counts(counted)) != (said := _counts(tally)):
            raise NotAsRecorded(head.place, f"its tallies of {name} are {said}, should be {counts}")
    if (ours := _by_tenant(draft.ledger.tallies)) != (theirs := _by_tenant(head.tallies)):
        raise NotAsRecorded(head.place, f"its tallies by tenant are {theirs}, should be {ours}")


def _shown(decision: Decision) -> str:
    """As JSON, cut: content copied from a label may hold bytes that are not UTF-8."""
    text = encode(decision).decode(errors="backslashreplace")
    return text if len(text) <= 200 else text[:197] + "..."


def _by_tenant(tallies: Tallies) -> str:
    """The lines in their order, cut."""
    text = encode([tallies.tenants, tallies.other_tenants]).decode()
    return text if len(text) <= 2_000 else f"{text[:1_900]}... (sha256 {sha256(text.encode()).hexdigest()})"


def _counts(tally: Tally) -> dict[str, int]:
    """The counts that every version wrote."""
    ends = {f"examples {name}": count for name, count in tally.examples.items()}
    ends |= {f"labels {name}": count for name, count in tally.labels.items()}
    return {"mistakes": tally.mistakes, "updates": tally.updates, **ends}
