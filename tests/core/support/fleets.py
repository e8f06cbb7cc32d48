"""A fleet of workers on a log in memory: each owns partitions, follows the others late, dies, and is replaced.

Its log is a recording, in any order of its lines that keeps each partition's.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from mistakebound.core.messages.schema import FORMAT, Base, Epoch, encode
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import INPUTS, Outgoing, Record, TopicPartition, Transaction
from mistakebound.core.replay.replay import report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.settings import Settings
from mistakebound.worker.takeover import WorkerState, take_over
from tests.core.support.every_kind import CASES, Case
from tests.core.support.histories import _WithInputs, random_inputs, random_settings
from tests.core.support.memory_log import MemoryLog, MemorySession


@dataclass
class Fleet:
    """One random history of up to four workers over up to four partitions."""

    random: Random
    case: Case | None = None
    settings: Settings = field(init=False)
    log: MemoryLog = field(init=False)
    deaths: int = 0
    """Workers that died amid a transaction."""
    moves: int = 0
    """How often the partitions were shared out anew."""

    def __post_init__(self) -> None:
        random = self.random
        case = self.case or random.choice(list(CASES.values()))
        self.settings = random_settings(random, case)
        self.partitions = case.partitions(random.choice((1, 2, 3, 4)))
        self.log = MemoryLog(self.partitions, random.choice((1_000_000, 1_000_000, 1_500)))
        inputs = random.choice((random_inputs, _busy_inputs, _busy_inputs))
        self.inputs = inputs(random, case, self.partitions)
        self._visible: dict[TopicPartition, int] = dict.fromkeys(self.inputs, 0)
        self.epoch = 0
        self.begin_epoch(self.settings)

    def begin_epoch(self, settings: Settings, base: Base | None = None) -> None:
        """All workers stop, and the next epoch begins."""
        self.settings, self.epoch = settings, self.epoch + 1
        record = (
            first_epoch(settings)
            if self.epoch == 1
            else Epoch(self.epoch, FORMAT, dict(settings.of_epoch()), base)
        )
        outputs = [Outgoing("updates", p, None, encode(record)) for p in range(self.partitions)]
        self.log.commit(Transaction(outputs), marker=self._chance(0.5))
        self._assign()

    def run(self, rounds: int | None = None) -> None:
        """So many rounds; without a number, until every record is consumed."""
        done = 0
        while done < rounds if rounds is not None else self._left():
            done += 1
            for at, records in self.inputs.items():
                if rounds is None and done > 80:
                    self._visible[at] = len(records)
                elif self._chance(0.4):
                    self._visible[at] = min(len(records), self._visible[at] + self.random.randrange(0, 9))
            chance = self.random.random()
            if chance < 0.04:
                self._die()
            elif chance < 0.1:
                self.moves += 1
                self._assign()
            self._work(self.random.choice(self.workers))

    def live(self) -> Report:
        """What `status --model` says: the report of one who takes all over."""
        return report_of(self._take_over(range(self.partitions)).state)

    def recording(self) -> list[Record]:
        """All records, topic partitions mixed in any way."""
        left: dict[Any, list[Record]] = {
            at: list(reversed(records))
            for at, records in {**self.inputs, **self.log.records}.items()
            if records
        }
        found = []
        while left:
            at = self.random.choice(list(left))
            found.append(left[at].pop())
            if not left[at]:
                del left[at]
        return found

    # --- the workers ------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Partitions are shared out anew; whoever gets one takes it over from the log."""
        workers = self.random.choice((1, 2, 2, 3, 4))
        owned: list[list[int]] = [[] for _ in range(workers)]
        for p in range(self.partitions):
            self.random.choice(owned).append(p)
        self.workers = [self._take_over(each) for each in owned if each]

    def _die(self) -> None:
        """Amid its transaction, of which nothing is ever seen; another worker takes over."""
        self.deaths += 1
        worker = self.random.choice(self.workers)
        merge, drained = self._buffered(worker)
        result = step(worker.state, merge, drained, self.settings.batch.max_records)
        if result is not None:
            outputs = result.transaction.outputs
            self.log.abort(outputs[: self.random.randrange(len(outputs) + 1)], marker=self._chance(0.8))
        self.workers.remove(worker)
        self.workers.append(self._take_over(worker.state.ledgers))

    def _work(self, worker: WorkerState) -> None:
        for q in range(self.partitions):
            if q not in worker.state.ledgers:
                start, end = worker.fold.next_offsets[q], self.log.high_watermark("updates", q)
                stop = self.random.randint(start, end) if self._chance(0.6) else start
                worker.fold.fold(q, self.log.read("updates", q, start, stop))
        merge, drained = self._buffered(worker)
        result = step(worker.state, merge, drained, self.settings.batch.max_records)
        if result is None:
            return
        ends = self.log.commit(result.transaction, marker=self._chance(0.8))
        worker.state.committed(result.transaction, ends)
        for (topic, p), end in ends.items():
            if topic == "updates":
                worker.fold.next_offsets[p] = end
        worker.positions.update(result.transaction.positions)

    def _take_over(self, partitions: Any) -> WorkerState:
        session: Any = MemorySession(self.log)
        log: Any = _WithInputs(self.log, self.inputs)
        return take_over(log, session, self.settings, partitions, None, None)

    def _buffered(self, worker: WorkerState) -> tuple[Merge, set[TopicPartition]]:
        merge, drained = Merge(worker.state.ledgers), set[TopicPartition]()
        portion = self.random.choice((None, 1, 3))
        for p, ledger in worker.state.ledgers.items():
            for topic, position in zip(INPUTS, (ledger.examples_next, ledger.labels_next), strict=True):
                visible = self.inputs[topic, p][: self._visible[topic, p]]
                waiting = [record for record in visible if record.offset >= position]
                merge.add(waiting[:portion])
                if not waiting:
                    drained.add((topic, p))
        return merge, drained

    def _left(self) -> bool:
        return any(
            records and records[-1].offset >= position
            for (topic, p), records in self.inputs.items()
            for position in [self._position(topic, p)]
        )

    def _position(self, topic: str, partition: int) -> int:
        position = self.log.positions.get(partition)
        return 0 if position is None else int(getattr(position, topic))

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


def _busy_inputs(random: Random, case: Case, partitions: int) -> dict[TopicPartition, list[Record]]:
    """Most examples get their label soon, and clocks run: much is learned in every partition."""
    found: dict[TopicPartition, list[Record]] = {}
    for p in range(partitions):
        examples: list[Record] = []
        labels: list[Record] = []
        for number in range(random.randrange(10, 60)):
            x, label = case.row(random, noise=0.3)
            content = encode({"id": f"i{number}", "features": x, **case.whose(random)})
            examples.append(Record("examples", p, number, 3 * number, b"key", content))
            if random.random() < 0.9:
                said = encode({"id": f"i{number}", "label": label})
                labels.append(
                    Record("labels", p, len(labels), 3 * number + random.randrange(9), b"key", said)
                )
        found["examples", p], found["labels", p] = examples, labels
    return found
