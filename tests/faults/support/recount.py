"""Recounts a log from its records alone: the promise that every number can be derived again, checked.

Nothing of the worker's ledger, fold or messages is used here; JSON is read with the standard library,
and sums are written out. What cannot be derived, or disagrees, is an AssertionError that says where.
"""

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mistakebound.core.records import INPUTS, OUTPUTS, TOPICS, Position, Record
from mistakebound.log.protocol import Log

REMEMBERED = 100_000
"""Default of `labels.remember`."""
EXAMPLE_ENDS = ("labelled", "expired", "evicted", "duplicate", "invalid")
LABEL_ENDS = ("applied", "applied_late", "duplicate", "conflict", "expired", "unmatched", "invalid")
Json = dict[str, Any]


@dataclass
class Recount:
    """What a log's records come to, over all partitions."""

    predictions: dict[str, bool] = field(default_factory=dict)
    """Id -> published prediction."""
    judged: dict[str, bool] = field(default_factory=dict)
    """Id -> the label that was applied."""
    examples: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    parked: int = 0
    mistakes: int = 0
    updates: list[int] = field(default_factory=list)
    """Of each partition."""
    theta: list[dict[str, float]] = field(default_factory=list)
    kappa: list[dict[str, float]] = field(default_factory=list)
    """Rows of each partition: the sum of y*x over its updates, and of g*y*x."""
    digest: str = ""


def recount(log: Log, remember: int = REMEMBERED) -> Recount:
    """Derive everything from the topics, and compare it with all that the worker has written about it.

    `remember` is the setting of this name. All inputs must have been consumed. Reads to the high watermark of every partition, under
    `read_committed`: a transaction left open makes that fail.
    """
    found = Recount()
    positions = log.group_positions()
    for p in range(log.partitions):
        records = {topic: list(log.read(topic, p, 0, wait_s=15)) for topic in TOPICS}
        position = positions[p]
        assert position is not None, f"no position was ever committed for partition {p}"
        for topic in INPUTS:
            # Not the partition's end: behind its last record may be markers and records that were aborted.
            end = max((record.offset + 1 for record in records[topic]), default=0)
            assert end == getattr(position, topic), f"{topic}-{p} ends at {end}, the group is at {position}"
        Partition(p, records, position, found, remember).count()
        theta, kappa = _rows(records["updates"])
        found.theta.append(theta)
        found.kappa.append(kappa)
    found.digest = digest(found.theta)
    return found


def folded(log: Log) -> Recount:
    """Only the model: the sum of the updates in the log."""
    found = Recount()
    for p in range(log.partitions):
        updates = list(log.read("updates", p, 0, wait_s=15))
        theta, kappa = _rows(updates)
        found.theta.append(theta)
        found.kappa.append(kappa)
        found.updates.append(len(updates) - 1)
    found.digest = digest(found.theta)
    return found


class Partition:
    """One partition's records, its decisions replayed in order with nothing but dictionaries."""

    def __init__(
        self,
        number: int,
        records: Mapping[str, Sequence[Record]],
        position: Position,
        found: Recount,
        remember: int,
    ) -> None:
        self.remember = remember
        self.name = f"partition {number}"
        self.position, self.found = position, found
        self.inputs = {topic: {record.offset: record for record in records[topic]} for topic in INPUTS}
        self.offsets = {topic: list(self.inputs[topic]) for topic in INPUTS}
        self.outputs = {topic: [_json(record) for record in records[topic]] for topic in OUTPUTS[:-1]}
        self.dead_letters = len(records["dead-letters"])
        self.predicted: dict[int, Json] = {}
        self.ended: dict[int, str] = {}
        """Example's offset -> what became of it."""
        self.decided: dict[int, str] = {}
        """Label's offset -> the same."""
        self.parked: dict[int, str] = {}
        self.values: dict[str, bool | None] = {}
        """Id -> the value that a later label is compared with; None where it expired or was evicted."""
        self.resolved: dict[str, None] = {}
        """Ids that are remembered, in the order in which they were resolved."""
        self.applied: list[tuple[int, Json]] = []
        self.tally: Json = {
            "examples": Counter(), "labels": Counter(), "mistakes": 0, "majority_mistakes": 0,
            "actual": Counter(),
        }  # fmt: skip

    def count(self) -> None:
        self._predictions()
        self._decisions()
        self._inputs()
        self._updates()
        found = self.found
        found.examples += self.tally["examples"]
        found.labels += self.tally["labels"]
        found.mistakes += self.tally["mistakes"]
        found.waiting += len(self.predicted) - sum(source in self.predicted for source in self.ended)
        found.parked += len(self.parked)

    def _predictions(self) -> None:
        for each in self.outputs["predictions"]:
            record_id, source = each["id"], each["source"]
            assert record_id not in self.found.predictions, f"{self.name}: {record_id} was predicted twice"
            record = self.inputs["examples"][source]
            assert _identity(record) == record_id, f"{self.name}: {each} is not of {record}"
            assert json.loads(record.value or b"")["features"] == each["features"], f"{self.name}: {each}"
            self.found.predictions[record_id] = each["prediction"]
            self.predicted[source] = each

    def _decisions(self) -> None:
        reached = {"examples": 0, "labels": 0}
        part, last = 0, None
        for each in self.outputs["outcomes"]:
            assert each["part"] == part, f"{self.name}: part {part} is missing before {each}"
            for decision in each["decisions"]:
                self._decide(decision)
            part += 1
            if "tallies" not in each:
                continue
            part, last = 0, each
            for place, run in enumerate(each["order"]):
                reached[INPUTS[place % 2]] += run
            ends = {topic: self._after(topic, count) for topic, count in reached.items()}
            assert each["inputs"] == ends, f"{self.name}: {ends} was reached, {each['inputs']} is said"
            self._compare(each, reached)
        assert last is not None, f"{self.name}: no outcomes"
        assert part == 0, f"{self.name}: the last partition step is not whole"
        position = self.position
        assert last["inputs"] == {"examples": position.examples, "labels": position.labels}, self.name
        assert last["marks"] == json.loads(position.metadata), f"{self.name}: {position} but {last['marks']}"

    def _after(self, topic: str, count: int) -> int:
        """The offset after so many records; markers and aborted records lie between them."""
        return self.offsets[topic][count - 1] + 1 if count else 0

    def _decide(self, decision: Json) -> None:
        outcome, record_id = decision["outcome"], decision.get("id")
        source, offset = decision.get("source"), decision.get("label_offset")
        where = f"{self.name}: {decision}"
        if offset is None:
            self._end(source, outcome, where)
            if outcome in ("expired", "evicted"):
                assert self.predicted[source]["id"] == record_id, where
                self._remember(record_id, None)
            return
        record = self.inputs["labels"][offset]
        if outcome == "parked":
            assert offset not in self.decided | self.parked and record_id not in self.values, where
            self.parked[offset] = record_id
            self.values[record_id] = decision["label"]
        else:
            assert offset not in self.decided, f"{where}: the label was {self.decided[offset]} before"
            waited = self.parked.pop(offset, None)
            assert waited in (None, record_id), where
            self.decided[offset] = outcome
            self.tally["labels"][outcome] += 1
            if outcome == "invalid":
                return
            self._judge(decision, waited is not None, where)
        assert _identity(record) == record_id, where
        assert json.loads(record.value or b"")["label"] is decision["label"], where

    def _judge(self, decision: Json, was_parked: bool, where: str) -> None:
        outcome, record_id, label = decision["outcome"], decision["id"], decision["label"]
        if outcome == "applied":
            self._apply(decision, where)
        elif outcome == "applied_late":
            assert was_parked or self.values[record_id] is None, where
            assert (
                json.loads(self.inputs["labels"][decision["label_offset"]].value or b"")["features"]
                == (decision["features"])
            ), where
            self._remember(record_id, label)
            self._count(decision)
        elif outcome == "unmatched":
            assert was_parked, where
            del self.values[record_id]
        elif outcome == "expired":
            assert self.values[record_id] is None, where
        else:
            assert (outcome == "duplicate") is (self.values[record_id] is label), where

    def _apply(self, decision: Json, where: str) -> None:
        record_id, source, label = decision["id"], decision["source"], decision["label"]
        assert record_id not in self.found.judged, f"{where}: a label was applied before"
        published = self.predicted[source]
        assert published["id"] == record_id, where
        assert published["prediction"] is decision["prediction"], where
        self._end(source, "labelled", where)
        self.found.judged[record_id] = label
        self._remember(record_id, label)
        self.applied.append((source, decision))
        self._count(decision)

    def _count(self, decision: Json) -> None:
        label, seen = decision["label"], self.tally["actual"]
        self.tally["majority_mistakes"] += (seen["true"] > seen["false"]) is not label
        seen[json.dumps(label)] += 1
        self.tally["mistakes"] += decision["prediction"] is not label

    def _remember(self, record_id: str, label: bool | None) -> None:
        """The id is resolved; the one resolved longest ago is forgotten beyond the limit."""
        self.values[record_id] = label
        self.resolved.pop(record_id, None)
        self.resolved[record_id] = None
        if len(self.resolved) > self.remember:
            oldest = next(iter(self.resolved))
            del self.resolved[oldest], self.values[oldest]

    def _end(self, source: int, outcome: str, where: str) -> None:
        assert source not in self.ended, f"{where}: the example was {self.ended[source]} before"
        assert (source in self.predicted) is (outcome not in ("duplicate", "invalid")), where
        self.ended[source] = outcome
        self.tally["examples"][outcome] += 1

    def _compare(self, said: Json, reached: Mapping[str, int]) -> None:
        """The tallies of this partition step with the decisions so far."""
        life, tally = said["tallies"]["life"], self.tally
        where = f"{self.name}, outcomes to {reached}"
        for stream, ends in (("examples", EXAMPLE_ENDS), ("labels", LABEL_ENDS)):
            derived = {"consumed": reached[stream], **{end: tally[stream][end] for end in ends}}
            assert derived == life[stream], f"{where}: {stream}"
        for name in ("mistakes", "majority_mistakes"):
            assert tally[name] == life[name], f"{where}: {name}"
        assert {name: count for name, count in tally["actual"].items() if count} == life["actual"], where
        assert life == said["tallies"]["epoch"], f"{where}: there was one epoch only"

    def _inputs(self) -> None:
        """Every record consumed is in exactly one place."""
        for offset in self.inputs["examples"]:
            assert offset in self.predicted or offset in self.ended, f"{self.name}: example {offset} is lost"
        for offset in self.inputs["labels"]:
            assert (offset in self.decided) is not (offset in self.parked), f"{self.name}: label {offset}"
        invalid = self.tally["examples"]["invalid"] + self.tally["labels"]["invalid"]
        assert self.dead_letters == invalid, (
            f"{self.name}: {self.dead_letters} dead letters, {invalid} invalid"
        )
        times = [record.timestamp_ms for topic in INPUTS for record in self.inputs[topic].values()]
        assert self.outputs["outcomes"][-1]["at"] == max(times), f"{self.name}: stream time"

    def _updates(self) -> None:
        """Updates are of applied labels, in the order applied, each once, and counted."""
        labels = iter(self.applied)
        first, *updates = self.outputs["updates"]
        assert first["epoch"] == 1, f"{self.name}: the epoch record is {first}"
        for place, each in enumerate(updates):
            assert (each["epoch"], each["n"]) == (1, place + 1), f"{self.name}: update {place + 1} is {each}"
            _, decision = next(pair for pair in labels if pair[0] == each["source"])
            assert (decision["id"], decision["label"]) == (each["id"], each["label"]), f"{self.name}: {each}"
            assert each["features"] == self.predicted[each["source"]]["features"], f"{self.name}: {each}"
        said = self.outputs["outcomes"][-1]["tallies"]["life"]["updates"]
        assert len(updates) == said, f"{self.name}: {len(updates)} updates, {said} are said"
        self.found.updates.append(len(updates))


def _json(record: Record) -> Json:
    found = json.loads(record.value or b"")
    assert isinstance(found, dict), record
    return found


def _identity(record: Record) -> str:
    said = json.loads(record.value or b"").get("id")
    return (record.key or b"").decode() if said is None else str(said)


def _rows(updates: Sequence[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """Rows of theta and kappa of one partition, by one addition after the other."""
    theta: dict[str, float] = {}
    kappa: dict[str, float] = {}
    for record in updates[1:]:
        update = _json(record)
        sign = 1.0 if update["label"] else -1.0
        paid = sign * float(sum(update["clock"]))
        for name, value in [*update["features"].items(), ("BIAS", 1.0)]:
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0  # noqa: PLW2901
            theta[name] = theta.get(name, 0.0) + sign * float(value)
            kappa[name] = kappa.get(name, 0.0) + paid * float(value)
    return theta, kappa


def digest(rows: Sequence[Mapping[str, float]]) -> str:
    """SHA-256 over the names whose theta is not 0, in byte order: name, zero byte, little-endian float64."""
    theta: dict[bytes, float] = {}
    for row in rows:
        for name, value in row.items():
            theta[name.encode()] = theta.get(name.encode(), 0.0) + value
    seal = hashlib.sha256()
    for name in sorted(theta):
        if theta[name] != 0.0:
            seal.update(name + b"\0" + struct.pack("<d", theta[name]))
    return seal.hexdigest()
