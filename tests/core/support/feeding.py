"""A worker without a log: records in, the decisions and outputs of its steps back."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from mistakebound.core.messages.schema import Decision, Outcomes, read_outcomes
from mistakebound.core.messages.tallies import Tally
from mistakebound.core.records import Headers, Outgoing, Record, Topic
from mistakebound.core.replay.replay import fresh
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.core.step.step import Step, step
from mistakebound.settings import Settings


@dataclass
class Fed:
    """What the steps made of the records fed."""

    steps: list[Step] = field(default_factory=list)

    @property
    def outputs(self) -> list[Outgoing]:
        return [output for one in self.steps for output in one.transaction.outputs]

    @property
    def facts(self) -> list[StepFacts]:
        return [one.facts for one in self.steps]

    def values(self, topic: Topic) -> list[Any]:
        """The JSON values written to a topic."""
        return [json.loads(output.value or b"") for output in self.outputs if output.topic == topic]

    @property
    def predictions(self) -> list[Any]:
        return self.values("predictions")

    @property
    def updates(self) -> list[Any]:
        return self.values("updates")

    @property
    def dead_letters(self) -> list[Outgoing]:
        return [output for output in self.outputs if output.topic == "dead-letters"]

    @property
    def outcomes(self) -> list[Outcomes]:
        return [
            read_outcomes(Record("outcomes", output.partition, 0, 0, output.key, output.value))
            for output in self.outputs
            if output.topic == "outcomes"
        ]

    @property
    def decisions(self) -> list[Decision]:
        """Every decision in order."""
        return [decision for one in self.outcomes for decision in one.decisions]

    @property
    def decided(self) -> list[tuple[str, str | None]]:
        """(outcome, id) in order."""
        return [(decision.outcome, decision.id) for decision in self.decisions]


class Feeder:
    """Writes inputs at growing offsets and steps over them, committing every step."""

    def __init__(self, partitions: int = 1, limits: SizeLimits | None = None, **sections: Any) -> None:
        self.settings = Settings.model_validate(sections)
        self.partitions = partitions
        self.state = fresh(self.settings, partitions)
        if limits is not None:
            self.state.limits = limits
        self.everything = {(topic, p) for topic in ("examples", "labels") for p in range(partitions)}
        self.next: Counter[tuple[Topic, int]] = Counter()

    @property
    def model(self) -> Any:
        return self.state.model

    @property
    def ledger(self) -> Any:
        return self.state.ledgers[0]

    def example(
        self,
        record_id: Any,
        at: int,
        features: Any = None,
        *,
        tenant: Any = None,
        partition: int = 0,
        **record: Any,
    ) -> Record:
        """An example record at its offset; features default to {"a": 1}."""
        value = {"id": record_id, "features": {"a": 1} if features is None else features}
        value |= {} if tenant is None else {"tenant": tenant}
        return self.record("examples", at, json.dumps(value).encode(), partition=partition, **record)

    def label(
        self, record_id: Any, at: int, label: Any = True, *, partition: int = 0, **content: Any
    ) -> Record:
        """A label record at its offset; `content` is what it carries beside."""
        value = json.dumps({"id": record_id, "label": label, **content}).encode()
        return self.record("labels", at, value, partition=partition)

    def record(
        self,
        topic: Topic,
        at: int,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> Record:
        """Any record at its offset."""
        offset = self.next[topic, partition]
        self.next[topic, partition] += 1
        return Record(topic, partition, offset, at, key, value, headers)

    def feed(self, *records: Record, max_records: int = 1_000_000) -> Fed:
        """Steps over all records, each committed."""
        merge = Merge(range(self.partitions))
        merge.add(records)
        fed = Fed()
        while (one := step(self.state, merge, self.everything, max_records)) is not None:
            fed.steps.append(one)
            self.commit(one)
        assert not merge.buffered()
        return fed

    def commit(self, one: Step) -> None:
        """As a log would: outputs get offsets, and the state hears the ends."""
        for output in one.transaction.outputs:
            self.next[output.topic, output.partition] += 1
        ends = {(o.topic, o.partition): self.next[o.topic, o.partition] for o in one.transaction.outputs}
        self.state.committed(one.transaction, ends)

    def balance(self) -> None:
        """Every record consumed is in one outcome, or held: on each partition, for life and for the epoch."""
        for ledger in self.state.ledgers.values():
            for tally in (ledger.tallies.life, ledger.tallies.epoch):
                assert tally.examples["consumed"] == _ends(tally.examples) + len(ledger.waiting)
                assert tally.labels["consumed"] == _ends(tally.labels) + len(ledger.parked)
                assert tally.labels["applied"] == tally.examples["labelled"]
                assert tally.judged == sum(tally.actual.values())
                _balance_confusion(tally)


def _balance_confusion(tally: Tally) -> None:
    """Of all predictions counted by (actual, predicted), the mistakes are those that differ."""
    confusion = tally.confusion
    if confusion is UNSET:
        assert not tally.judged
        return
    for rule, mistakes in ((confusion.model, tally.mistakes), (confusion.majority, None)):
        if confusion.tabled:
            labels, correct = sum(map(sum, rule.table)), sum(row[n] for n, row in enumerate(rule.table))
        else:
            labels, correct = sum(rule.predicted), sum(rule.correct)
            assert labels == sum(confusion.actual)
        assert labels <= tally.judged
        assert mistakes in (None, labels - correct)


def _ends(counts: dict[str, int]) -> int:
    return sum(count for outcome, count in counts.items() if outcome != "consumed")
