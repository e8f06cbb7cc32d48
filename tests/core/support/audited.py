"""What the audit reads, in plain lists that a test may alter."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mistakebound.core.audit import Findings, audit
from mistakebound.core.checkpoint_content import Checkpoint
from mistakebound.core.records import TOPICS, Position, Record, Topic, TopicPartition
from mistakebound.settings import MessageSettings
from tests.core.support.histories import History


class Lists:
    """A whole log, in memory."""

    def __init__(self, partitions: int, records: Mapping[Any, Iterable[Record]]) -> None:
        self.partitions = partitions
        self.committed: dict[int, Position | None] = {}
        """What the group has committed, where a test says."""
        self.records: dict[TopicPartition, list[Record]] = {
            (topic, p): list(records.get((topic, p), ())) for topic in TOPICS for p in range(partitions)
        }

    def read(self, topic: Topic, partition: int) -> Iterator[Record]:
        return iter(list(self.records[topic, partition]))

    def begins_late(self, topic: Topic, partition: int) -> bool:
        return False

    def goes_on(self, partition: int, after: int) -> bool:
        return False

    def positions(self) -> Mapping[int, Position | None]:
        return self.committed

    def values(self, topic: Topic, partition: int) -> list[Any]:
        """The JSON values of one partition."""
        return [msgspec.json.decode(record.value or b"null") for record in self.records[topic, partition]]

    def rewrite(self, topic: Topic, partition: int, place: int, change: Callable[[Any], None]) -> None:
        """Alter one record's JSON value."""
        records = self.records[topic, partition]
        value = msgspec.json.decode(records[place].value or b"null")
        change(value)
        records[place] = records[place]._replace(value=msgspec.json.encode(value))

    def audit(self, *checkpoints: Checkpoint, most: int = 20) -> Findings:
        loads = [(f"checkpoint {number}", lambda one=one: one) for number, one in enumerate(checkpoints)]
        return audit(self, MessageSettings(), loads, Findings(most))


def of_history(history: History) -> Lists:
    """The topics that a history left."""
    return Lists(history.partitions, {**history.inputs, **history.log.records})
