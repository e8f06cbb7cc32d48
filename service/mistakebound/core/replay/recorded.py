"""What a recording holds: the inputs, and what a fleet of workers made of them, partition step by partition step.

`outcomes` say of each partition step which model it began with, which examples and labels it consumed in which
order, and what it decided. That, with the inputs, is enough to do the same work again (`repeat.py`).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import Decision, Epoch, Outcomes, Version, read_outcomes, read_update
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.records import INPUTS, Record, TopicPartition


class NotAsRecorded(ValueError):
    """What a recording says of its inputs is not what they come to, or cannot be followed."""

    def __init__(self, place: str, wrong: str) -> None:
        super().__init__(
            f"the recording cannot be repeated: {place}: {wrong}. It was altered, or these settings (such as "
            "[messages]) or this version read its inputs in another way: `mistakebound audit --recording FILE` shows "
            "every difference, and a replay afresh (`--afresh`) takes its inputs alone"
        )


class RecordedStep(NamedTuple):
    """One partition step as it was written down."""

    line: int
    """Place in the recording of its first part: partition steps that need nothing of each other come in this order."""
    place: str
    """Topic, partition and offset of its last part."""
    model: Version
    """With which it began."""
    decisions: list[Decision]
    order: list[int]
    """Run lengths of the examples and labels consumed, examples first."""
    at: int
    tallies: Tallies
    messages: dict[str, str] | None = None
    """How inputs are read, where that is other than the epoch began with."""
    schemas: Mapping[str, SchemaText] = {}
    """Written with it."""


class Recorded:
    """A recording's records. Those of a topic partition are in offset order."""

    def __init__(self, records: Iterable[Record], partitions: int) -> None:
        self.partitions = partitions
        self.inputs: dict[TopicPartition, deque[Record]] = {
            (topic, p): deque() for topic in INPUTS for p in range(partitions)
        }
        self.updates: list[list[Record]] = [[] for _ in range(partitions)]
        self._outcomes: list[deque[tuple[int, Record]]] = [deque() for _ in range(partitions)]
        self._heads: list[RecordedStep | None] = [None] * partitions
        for line, record in enumerate(records):
            if record.topic in INPUTS:
                self.inputs[record.topic, record.partition].append(record)
            elif record.topic == "outcomes":
                self._outcomes[record.partition].append((line, record))
            elif record.topic == "updates":
                self.updates[record.partition].append(record)

    def all_inputs(self) -> Iterator[Record]:
        """The inputs that are left, partition by partition."""
        return chain.from_iterable(self.inputs.values())

    def peek_inputs(self) -> Iterator[Record]:
        """The same, without consuming them."""
        return chain.from_iterable(map(list, self.inputs.values()))

    @property
    def left(self) -> int:
        """How many inputs are left."""
        return sum(map(len, self.inputs.values()))

    def epochs(self) -> dict[int, Epoch]:
        """The epochs that `updates` begin, by number. Raises BadLog."""
        found: dict[int, Epoch] = {}
        for record in chain.from_iterable(self.updates):
            message = read_update(record)
            if isinstance(message, Epoch):
                found.setdefault(message.epoch, message)
        return found

    def schemas(self) -> dict[str, SchemaText]:
        """Every schema that its outcomes hold; of one id the newest. Raises BadLog."""
        found: dict[str, SchemaText] = {}
        for _, record in chain.from_iterable(self._outcomes):
            if b'"schemas":' in (record.value or b""):
                found |= read_outcomes(record).schemas or {}
        return found

    def obstacle(self, epochs: Mapping[int, Epoch]) -> str | None:
        """Why its work cannot be repeated, by its first and last partition steps; None where nothing is in the way."""
        if not any(self._outcomes):
            return "it holds no outcomes" if self.left else None
        for p, records in enumerate(self._outcomes):
            if records and (found := self._missing(p, epochs)) is not None:
                return found
        return self._repaired()

    def _repaired(self) -> str | None:
        """Work that inputs alone do not come to: input that was lost, and steps of which parts were there before."""
        for _, record in chain.from_iterable(self._outcomes):
            value = record.value or b""
            if b'"adopted":' in value or b'"first":' in value:
                message = read_outcomes(record)
                if message.adopted is not None:
                    return f"{record.location} completes a step whose transaction was torn"
                if any(decision.first is not None for decision in message.decisions):
                    return f"{record.location} passes input that was lost before it was read"
        return None

    def _missing(self, partition: int, epochs: Mapping[int, Epoch]) -> str | None:
        try:
            last = read_outcomes(self._outcomes[partition][-1][1])
            first = self.head(partition)
        except (BadLog, NotAsRecorded) as error:
            return str(error)
        if first is None or last.inputs is None or last.tallies is None:
            return f"outcomes-{partition} ends within a partition step"
        if last.model.epoch not in (epochs or (1,)):
            return f"it holds no updates of epoch {last.model.epoch}, and so not its settings"
        counts = first.tallies.life.examples, first.tallies.life.labels
        consumed = [sum(first.order[0::2]), sum(first.order[1::2])]
        if [count["consumed"] for count in counts] != consumed:
            return f"outcomes-{partition} begins in the middle of the work"
        for topic, counted in zip(
            INPUTS, (last.tallies.life.examples, last.tallies.life.labels), strict=True
        ):
            end = getattr(last.inputs, topic)
            held = sum(record.offset < end for record in self.inputs[topic, partition])
            if held != counted["consumed"]:
                return f"it holds {held} of the {counted['consumed']} {topic} of partition {partition} that were consumed"
        return None

    def head(self, partition: int) -> RecordedStep | None:
        """The partition's next step; None at the end. Raises BadLog, NotAsRecorded."""
        if self._heads[partition] is None and self._outcomes[partition]:
            self._heads[partition] = self._read(partition)
        return self._heads[partition]

    def take(self, partition: int) -> None:
        """The partition's next step is done."""
        self._heads[partition] = None

    def _read(self, partition: int) -> RecordedStep:
        """Put the next step together from its parts, of which the last one alone has the summary."""
        records, parts = self._outcomes[partition], list[Outcomes]()
        line = records[0][0]
        while records:
            _, record = records.popleft()
            last = read_outcomes(record)
            parts.append(last)
            if last.order is not None and last.at is not None and last.tallies is not None:
                decisions = [decision for part in parts for decision in part.decisions]
                place = record.location
                told = last.order, last.at, last.tallies, last.messages
                schemas = {name: text for part in parts for name, text in (part.schemas or {}).items()}
                return RecordedStep(line, place, parts[0].model, decisions, *told, schemas)
        raise NotAsRecorded(f"outcomes-{partition}", "its last partition step has no last part")
