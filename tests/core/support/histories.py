"""Random histories: one worker that is restarted in every way, beside one that never is, perhaps through several epochs.

Both see the same records in the same portions. After every transaction, what the restarted worker holds
must equal what the other holds, and so must what a third, rebuilt from the recovery point alone, would hold.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
from msgspec.structs import astuple

from mistakebound.core.checkpoint_content import (
    FORMAT,
    Checkpoint,
    decode_checkpoint,
    encode_checkpoint,
    freeze,
    settings_digest,
    thaw,
)
from mistakebound.core.learners import KINDS
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import Base, Epoch, encode, read_outcomes
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import INPUTS, Outgoing, Position, Record, TopicPartition, Transaction
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.state import State
from mistakebound.core.step.step import step
from mistakebound.settings import OF_EPOCH, Settings
from mistakebound.worker.ledgers import Frozen, Start
from mistakebound.worker.takeover import Accepted, Borrow, WorkerState, epochs_of, take_over
from tests.core.support.every_kind import CASES, Case
from tests.core.support.memory_log import MemoryLog, MemorySession

RESTARTS = (
    "none",
    "abort",
    "stale",
    "recovery point",
    "lower recovery point",
    "checkpoint",
    "outcomes",
    "borrowed",
    "recovery point",
)


LIMITS = {"max_delay", "parking", "max_parked", "max_waiting", "remember"}


def random_settings(random: Random, case: Case) -> Settings:
    """Small limits, so that a short history reaches all of them."""
    issued = KINDS[case.kind].no_issued is None and random.random() < 0.3
    base = case.settings.model_dump(include=set(OF_EPOCH))
    return Settings.model_validate(
        {
            "features": base["features"],
            "predictions": base["predictions"],
            "learner": base["learner"]
            | {
                "tie": random.choice(("mistake", "positive", "negative")),
                "delay_policy": "issued" if issued else "rescore",
            },
            "labels": base["labels"]
            | {
                "max_delay": random.choice((0.005, 0.03, 0.1, 10)),
                "parking": random.choice((0, 0.01, 0.05, 10)),
                "max_parked": random.choice((1, 2, 4, 1000)),
                "max_waiting": random.choice((1, 2, 4, 1000)),
                "remember": random.choice((1, 2, 3, 5, 1000)),
            },
            "batch": {
                "max_records": random.choice((1, 2, 3, 5, 8, 1000)),
                "max_bytes": random.choice((500, *4 * (1_000_000,))),
            },
        }
    )


def random_inputs(random: Random, case: Case, partitions: int) -> dict[TopicPartition, list[Record]]:
    """Both inputs of each partition: skewed times, few ids, early and repeated labels, invalid records."""
    found: dict[TopicPartition, list[Record]] = {}
    for p in range(partitions):
        ids = random.choice((3, 6, 20))
        for topic in INPUTS:
            records: list[Record] = []
            offset, now = random.choice((0, 0, 7)), random.choice((0, 0, 30))
            for _ in range(random.randrange(random.choice((6, 14, 28)))):
                now += random.choice((0, 1, 1, 3, 3, 20))
                ts = -1 if random.random() < 0.03 else max(0, now + random.choice((0, 0, 0, -15, 15)))
                records.append(Record(topic, p, offset, ts, b"key", random_value(random, case, topic, ids)))
                offset += random.choice((1, 1, 1, 1, 2))
            found[topic, p] = records
    return found


def random_value(random: Random, case: Case, topic: str, ids: int) -> bytes | None:
    name = f"i{random.randrange(ids)}"
    chance = random.random()
    if chance < 0.02:
        return None
    if chance < 0.05:
        return random.choice((b"nonsense", b"\0\0\0\0\1{}", b'{"id": "i0"}', b'{"id": 1.5}', b"[]"))
    if topic == "labels":
        spellings = (1, 0) if True in case.labels else case.labels
        label = {"id": name, "label": random.choice((*case.labels, *spellings, 2.5))}
        return encode(label | random_content(random, case))
    if chance > 0.97 and case.settings.features.cross:
        return encode({"id": name, "features": {}, "tenant": random.choice((None, "", 1.5, "x" * 129))})
    return encode({"id": name, "features": case.features(random), **case.whose(random)})


def random_content(random: Random, case: Case) -> dict[str, Any]:
    """What a label record carries beside: mostly nothing, else its example, now and then one part or a wrong one."""
    if random.random() < 0.6:
        return {}
    content = {"features": case.features(random), "prediction": random.choice(case.labels)}
    content |= case.whose(random)
    chance = random.random()
    if chance < 0.1:
        del content[random.choice(("features", "prediction"))]
    elif chance < 0.2:
        content |= random.choice(({"features": 5}, {"prediction": 2.5}, {"prediction": None}))
    return content


def bits(value: Any) -> Any:
    """Floats as their bytes, so that -0.0 is not 0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, Mapping):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [bits(each) for each in value]
    return value


def ledger_of(ledger: Ledger) -> dict[str, Any]:
    """All that a ledger holds, in its order, apart from the floors."""
    return {
        "waiting": [(*astuple(entry)[:6], entry.tenant) for entry in ledger.waiting.values()],
        "parked": [(*astuple(entry)[:4], entry.carried) for entry in ledger.parked.values()],
        "remembered": [astuple(entry)[:2] for entry in ledger.remembered.values()],
        "keys": (list(ledger.waiting), list(ledger.parked), list(ledger.remembered)),
        "stream_time": ledger.stream_time,
        "tallies": msgspec.to_builtins(ledger.tallies),
        "next": (ledger.examples_next, ledger.labels_next),
        "missing": ledger.missing,
    }


def model_of(state: State) -> dict[str, Any]:
    """The model to the bit."""
    return {
        "version": msgspec.to_builtins(state.model.version()),
        "clock": list(state.model.clock),
        "state": bits(state.model.snapshot().state),
        "digest": state.model.digest(),
    }


def decided(transaction: Transaction) -> dict[str, Any]:
    """What a transaction says, apart from the recovery point and from how its decisions were cut into parts."""
    steps: dict[int, dict[str, Any]] = {}
    others: list[Outgoing] = []
    for outgoing in transaction.outputs:
        if outgoing.topic != "outcomes":
            others.append(outgoing)
            continue
        part = read_outcomes(Record("outcomes", outgoing.partition, 0, 0, None, outgoing.value))
        step = steps.setdefault(outgoing.partition, {"decisions": [], "model": part.model})
        step["decisions"] += part.decisions
        step |= {"order": part.order, "at": part.at, "inputs": part.inputs, "tallies": part.tallies}
    positions = {p: (place.examples, place.labels) for p, place in transaction.positions.items()}
    return {"others": others, "steps": steps, "positions": positions}


@dataclass
class History:
    """One random history. `run` raises AssertionError where the two workers part."""

    random: Random
    case: Case | None = None
    """Any, by chance, where none is given."""
    labels: dict[str, Any] = field(default_factory=dict)
    """Settings of labels that are not left to chance."""
    epochs: int = 1
    """At most; each after the first with limits of its own."""
    settings: Settings = field(init=False)
    log: MemoryLog = field(init=False)
    epoch: int = 1
    restarts: int = 0
    transactions: int = 0

    def __post_init__(self) -> None:
        random = self.random
        case = self.case or random.choice(list(CASES.values()))
        self.settings = random_settings(random, case)
        if self.labels:
            sections = self.settings.model_dump(exclude_unset=True)
            sections["labels"] = sections["labels"] | self.labels
            self.settings = Settings.model_validate(sections)
        self.partitions = case.partitions(random.choice((1, 1, 1, 2, 3)))
        self.log = MemoryLog(self.partitions, random.choice((1_000_000, 1_000_000, 1_500)))
        self.inputs = random_inputs(random, case, self.partitions)
        self.visible: dict[TopicPartition, int] = {
            topic_partition: random.choice((0, len(records)))
            for topic_partition, records in self.inputs.items()
        }
        self._kind = case
        self._begin(first_epoch(self.settings))
        self.shadow = self._take_over()
        self.worker = self._take_over()
        self.checkpoints: list[bytes] = []

    def run(self) -> None:
        """Until every record is consumed, restarting the worker between any two steps."""
        rounds = 0
        while self._left() or rounds == 0:
            rounds += 1
            for topic_partition, records in self.inputs.items():
                if rounds > 60 or self.random.random() < 0.5:
                    grown = self.visible[topic_partition] + self.random.randrange(0, 12)
                    self.visible[topic_partition] = min(len(records), len(records) if rounds > 60 else grown)
            portion = None if rounds > 60 else self.random.choice((None, None, 0, 1, 3))
            self._round(portion)
            self._restart()
            while self.epoch < self.epochs and self.random.random() < 0.2:
                self._next_epoch()
                self._restart()
        self._check_sums()

    def _begin(self, epoch: Epoch) -> None:
        value = encode(epoch)
        self._keep(Transaction([Outgoing("updates", p, None, value) for p in range(self.partitions)]))

    def _next_epoch(self) -> None:
        """All stop, and the next epoch begins, with other limits. The shadow reads back its model, and no ledger."""
        random, before = self.random, self.shadow.state
        other = random_settings(random, self._kind).labels.model_dump(include=LIMITS)
        labels = self.settings.labels.model_dump() | {
            name: value for name, value in other.items() if random.random() < 0.7
        }
        sections = self.settings.model_dump(include={"learner", "features", "predictions", "batch"})
        self.settings = Settings.model_validate({**sections, "labels": labels})
        based = random.random() < 0.5
        base = Base(self.epoch, [random.randint(0, n) for n in before.model.updates]) if based else None
        self.epoch += 1
        self._begin(Epoch(self.epoch, FORMAT, dict(self.settings.of_epoch()), base))
        self.shadow = self._take_over()
        for p, ledger in before.ledgers.items():
            carried = thaw(freeze(ledger), self.settings.labels)
            carried.tallies.begin_epoch()
            self.shadow.state.ledgers[p] = carried
        self.worker = self._take_over(held=self.worker if random.random() < 0.5 else None)
        self._compare(self.worker)

    def _round(self, portion: int | None) -> None:
        shadow, drained = self._buffered(self.shadow.state, portion)
        expected = step(self.shadow.state, shadow, drained, self.settings.batch.max_records)
        mine, _ = self._buffered(self.worker.state, portion)
        while True:
            result = step(self.worker.state, mine, drained, self.settings.batch.max_records)
            if result is None or expected is None:
                assert result is expected
                return
            assert decided(result.transaction) == decided(expected.transaction)
            self._step_ahead(mine)
            if self.random.random() > 0.15:
                break
            # The step is taken back, perhaps after some of it was written; then the same records again.
            written = result.transaction.outputs[: self.random.randrange(len(result.transaction.outputs) + 1)]
            self.log.abort(written, marker=self._marker())
            self.worker.state.rollback(result.partitions)
            mine, _ = self._buffered(self.worker.state, portion)
        ends = self._keep(result.transaction)
        for held in (self.shadow, self.worker):
            held.state.committed(result.transaction, ends)
            for (topic, p), end in ends.items():
                if topic == "updates":
                    held.fold.next_offsets[p] = end
            held.positions.update(result.transaction.positions)
        self.transactions += 1
        self._compare(self.worker)
        self._compare(self._take_over())  # a restart at this transaction, from the recovery point alone
        if self.random.random() < 0.3:
            self.checkpoints.append(encode_checkpoint(self._checkpoint()))

    def _step_ahead(self, merge: Merge) -> None:
        """Perhaps: the step after this one, made before this one is committed, and taken back."""
        if self.random.random() < 0.3:
            ahead = step(self.worker.state, merge, (), self.settings.batch.max_records)
            if ahead is not None:
                self.worker.state.rollback(ahead.partitions)

    def _restart(self) -> None:
        how = self.random.choice(RESTARTS)
        if how == "none":
            return
        self.restarts += 1
        if how == "abort":
            self._abort_one()
        elif how == "stale":
            self.worker = self._take_over(held=self.worker)
        elif how == "recovery point":
            self.worker = self._take_over()
        elif how == "lower recovery point":
            kept = dict(self.log.positions)
            self.log.positions = {p: self._lowered(position) for p, position in kept.items()}
            self.worker = self._take_over()
            self.log.positions = kept
            self.worker.positions = dict(kept)
        elif how == "checkpoint" and self.checkpoints:
            older = decode_checkpoint(self.random.choice(self.checkpoints))
            self.worker = self._take_over(checkpoint=older)
        elif how == "borrowed" and self.checkpoints:
            self.worker = self._take_over(
                checkpoint=decode_checkpoint(self.random.choice(self.checkpoints)), borrow=self._lent
            )
        elif how == "outcomes":
            self.worker = self._take_over(forgotten=True)
        self._compare(self.worker)

    def _abort_one(self) -> None:
        """A step that is given up, and then nothing."""
        mine, drained = self._buffered(self.worker.state, None)
        result = step(self.worker.state, mine, drained, self.settings.batch.max_records)
        if result is not None:
            self.log.abort(result.transaction.outputs, marker=self._marker())
            self.worker.state.rollback(result.partitions)

    def _take_over(
        self,
        held: WorkerState | None = None,
        checkpoint: Checkpoint | None = None,
        *,
        forgotten: bool = False,
        borrow: Borrow = lambda starts: {},
    ) -> WorkerState:
        session: Any = MemorySession(self.log, forgotten=forgotten)
        log: Any = _WithInputs(self.log, self.inputs)
        return take_over(
            log,
            session,
            self.settings,
            range(self.partitions),
            held,
            checkpoint,
            accepted=Accepted(lost_offsets=forgotten),
            borrow=borrow,
        )

    def _lent(self, starts: Mapping[int, Start]) -> dict[int, Frozen]:
        """Each partition's ledger out of another checkpoint, or none; one in four does not fit."""
        lent: dict[int, Frozen] = {}
        for p in starts:
            found = decode_checkpoint(self.random.choice(self.checkpoints))
            ledger = found.ledgers[p]
            if self.random.random() < 0.25:
                ledger = msgspec.structs.replace(ledger, outcomes_end=ledger.outcomes_end + 1_000_000)
            if self.random.random() < 0.8:
                lent[p] = Frozen(found.model.epoch, ledger)
        return lent

    def _compare(self, other: WorkerState) -> None:
        assert model_of(other.state) == model_of(self.shadow.state)
        for p, ledger in self.shadow.state.ledgers.items():
            assert ledger_of(other.state.ledgers[p]) == ledger_of(ledger), f"partition {p}"
        assert other.fold.next_offsets == self.shadow.fold.next_offsets

    def _buffered(self, state: State, portion: int | None) -> tuple[Merge, set[TopicPartition]]:
        """What a poll from the positions brings: everything visible, or so much of each topic partition."""
        merge = Merge(state.ledgers)
        drained: set[TopicPartition] = set()
        for p, ledger in state.ledgers.items():
            for topic, position in zip(INPUTS, (ledger.examples_next, ledger.labels_next), strict=True):
                records = self.inputs[topic, p][: self.visible[topic, p]]
                waiting = [record for record in records if record.offset >= position]
                merge.add(waiting[:portion])
                if not waiting:
                    drained.add((topic, p))
        return merge, drained

    def _left(self) -> bool:
        ledgers = self.shadow.state.ledgers
        positions = {("examples", p): ledger.examples_next for p, ledger in ledgers.items()} | {
            ("labels", p): ledger.labels_next for p, ledger in ledgers.items()
        }
        return any(
            records and records[-1].offset >= positions[topic_partition]
            for topic_partition, records in self.inputs.items()
        )

    def _keep(self, transaction: Transaction) -> dict[TopicPartition, int]:
        return self.log.commit(transaction, marker=self._marker())

    def _marker(self) -> bool:
        return self.random.random() < 0.8

    def _lowered(self, position: Position) -> Position:
        point = msgspec.json.decode(position.metadata)
        for name in "po":
            point[name] = self.random.randrange(point[name] + 1)
        if point["p"] == 0 and self.random.random() < 0.5:
            point |= {"o": 0, "s": 0}
        return position._replace(metadata=encode(point).decode())

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            FORMAT,
            self.settings.group,
            {},
            settings_digest(self.settings),
            epochs_of(self.worker.fold),
            self.worker.state.model.snapshot(),
            self.worker.fold.next_offsets,
            {p: freeze(ledger) for p, ledger in self.worker.state.ledgers.items()},
        )

    def _check_sums(self) -> None:
        """Every example and every label ended in exactly one outcome, or is still held."""
        for p, ledger in self.worker.state.ledgers.items():
            examples, labels = dict(ledger.tallies.life.examples), dict(ledger.tallies.life.labels)
            assert examples.pop("consumed") == sum(examples.values()) + len(ledger.waiting)
            assert labels.pop("consumed") == sum(labels.values()) + len(ledger.parked)
            assert ledger.tallies.life.examples["consumed"] == len(self.inputs["examples", p])
            sources = [
                msgspec.json.decode(each.value)["source"] for each in self.log.records["predictions", p]
            ]
            assert sources == sorted(set(sources)), "each example is predicted at most once"


class _WithInputs:
    """The memory log as a worker sees it, where the inputs start somewhere too."""

    def __init__(self, log: MemoryLog, inputs: Mapping[TopicPartition, list[Record]]) -> None:
        self._log, self._inputs = log, inputs

    def low_watermark(self, topic: Any, partition: int) -> int:
        records = self._inputs.get((topic, partition))
        if records is None:
            return self._log.low_watermark(topic, partition)
        return records[0].offset if records else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
