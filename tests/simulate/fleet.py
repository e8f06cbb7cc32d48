"""One seed: workers, a stream, faults; and what must be true when all is quiet again."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import structlog

from mistakebound.core.audit import Findings
from mistakebound.core.audit import audit as examine
from mistakebound.core.records import INPUTS, Outgoing, Position, Record, Topic
from mistakebound.log.partitioner import partition_of
from mistakebound.log.protocol import Fenced, Unreachable
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.events import show_all
from mistakebound.worker.loop import Worker
from mistakebound.worker.rebuilds import GaveUp
from mistakebound.worker.takeover import WorkerState
from tests.faults.support.recount import recount
from tests.faults.support.stream import stream
from tests.simulate.broker import MARKER_S, Broker
from tests.simulate.client import Client, SimulatedLog
from tests.simulate.network import Network, Weather
from tests.simulate.scheduler import Process, Scheduler, Stuck
from tests.simulate.stand_ins import BEGUN_S, installed
from tests.simulate.store import Store

CHAOS_S = 60.0
QUIET_S = 400.0
"""Within so much virtual time after the last fault everything must be worked off."""
NAMED_ENDS = (Unreachable, Fenced, GaveUp)
"""A supervisor starts a worker again that ended with one of these."""


class Failure(AssertionError):
    """What must not be happened."""


class View:
    """The broker's records as they are, for those who check: a log, and an audit's source."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.partitions = broker.partitions

    def read(self, topic: Topic, partition: int, start: int = 0, **_: Any) -> Iterator[Record]:
        log = self._broker.log((topic, partition))
        assert not log.open, f"a transaction is open in {topic}-{partition}"
        yield from self._broker.fetch((topic, partition), start, 2**40)[0]

    def high_watermark(self, topic: Topic, partition: int) -> int:
        return self._broker.log((topic, partition)).end

    def group_positions(self) -> dict[int, Position | None]:
        return self._broker.positions(range(self.partitions))

    def positions(self) -> dict[int, Position | None]:
        return self.group_positions()

    def begins_late(self, topic: Topic, partition: int) -> bool:
        return self._broker.log((topic, partition)).low > 0

    def goes_on(self, partition: int, after: int) -> bool:
        return next(self.read("outcomes", partition, after + 1), None) is not None


class NoMetrics:
    """Takes whatever it is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@dataclass(eq=False)
class Slot:
    """One worker under its supervisor."""

    name: str
    process: Process | None = None
    worker: Worker | None = None
    ended: BaseException | None = None
    runs: int = 0
    at_work: bool = False
    stop: bool = False


class Strike(NamedTuple):
    """One fault of a run."""

    at_s: float
    fault: str
    slot: int
    lasts_s: float
    part: float
    """Drawn for the fault's own use, 0 to 1."""


@dataclass
class Simulation:
    """One run. Everything that may vary is drawn from the seed: the world, the faults and the schedule from a source of
    chance each, so that a run without some of the faults is the same run otherwise."""

    seed: int
    workers: int | None = None
    client: Client | None = None
    only: Collection[int] | None = None
    """Numbers of the strikes that happen; None: all."""
    most_records: int | None = None
    scheduler: Scheduler = field(init=False)
    slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.seed)
        chance = Random(f"{self.seed} world")
        partitions = chance.choice((1, 2, 3, 4))
        count = self.workers or chance.choice((1, 2, 2, 3))
        self.settings = settings_of(chance)
        self.broker = Broker(self.scheduler, partitions, self._now_ms)
        self.network = Network(self.scheduler, self.broker)
        self.store = Store(self.scheduler)
        self.client = self.client or Client(
            asks_again=chance.random() < 0.5, most_records=chance.choice((5, 20, 100))
        )
        self.slots = [Slot(f"slot-{number}") for number in range(count)]
        self.records = self._stream(chance, partitions)[: self.most_records]
        self.pace_s = chance.choice((0.0, 0.1, 0.5))
        self.weather = Weather(
            delay_s=chance.choice((0.000_5, 0.005, 0.05)), ends=chance.choice((0.0, 0.0, 0.01, 0.05))
        )
        self.slow_markers_s = chance.choice((0.01, 0.1, 2.0))
        self.store_fails = chance.choice((0.0, 0.0, 0.3))
        self.strikes = self._plan(Random(f"{self.seed} faults"), count)
        self._sent = False

    def run(self) -> None:
        """Raises Failure, or what a worker should never have ended with."""
        structlog.configure(processors=[self._tell])
        with installed(self.scheduler, lambda *_: self.store):
            for slot in self.slots:
                self._start(slot)
            self.scheduler.spawn(self._produce, "producer")
            chaos = self.scheduler.spawn(self._disturb, "chaos")
            self._until(lambda: self._sent and chaos.done, 4 * CHAOS_S, "the faults end")
            self._until(self._worked_off, QUIET_S, "everything is worked off")
            for slot in self.slots:
                slot.stop = True
            self._until(
                lambda: not any(slot.at_work for slot in self.slots), QUIET_S, "the workers have stopped"
            )
            self._until(lambda: not any(log.open for log in self.broker.logs.values()), 60, "no transaction")
        self._check()

    def _tell(self, logger: object, method: str, event: Any) -> Any:
        """What workers log is part of the story."""
        who = self.scheduler.task.process.name if self.scheduler.in_task else "nobody"
        self.scheduler.tell(f"{who} {event.pop('event')} {event}")
        raise structlog.DropEvent

    # --- the world -------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return round((BEGUN_S + self.scheduler.now_s) * 1000)

    def _stream(self, chance: Random, partitions: int) -> list[Outgoing]:
        found = stream(chance.choice((20, 60, 120)), chance.randrange(2**32))
        return [
            Outgoing(
                each.topic,
                partition_of(each.key, partitions),
                each.key,
                each.value,
                each.headers,
                each.timestamp_ms,
            )
            for each in found
        ]

    def _produce(self) -> None:
        chance = self.scheduler.random
        done = 0
        while done < len(self.records):
            count = chance.randrange(1, 20)
            self.broker.append(self.records[done : done + count])
            done += count
            self.scheduler.sleep(chance.random() * self.pace_s)
        self._sent = True

    def _start(self, slot: Slot) -> None:
        slot.runs += 1
        slot.process = Process(f"{slot.name}.{slot.runs}")
        slot.at_work = True
        self.scheduler.spawn(lambda: self._work(slot), f"{slot.name}.{slot.runs}", slot.process)
        self.scheduler.tell(f"{slot.process.name} starts")

    def _work(self, slot: Slot) -> None:
        process = slot.process
        assert process is not None
        assert self.client is not None
        ended: BaseException | None = None
        try:
            log = SimulatedLog(self.settings, self.network, self.client)
            checkpoints = CheckpointSchedule(log, self.settings, slot.name, NoMetrics())  # type: ignore[arg-type]
            slot.worker = Worker(
                log, self.settings, slot.name,
                observe=show_all(checkpoints.observe),
                checkpoints=checkpoints,
                stopping=lambda idle: slot.stop,
                interrupted=lambda: slot.stop,
            )  # fmt: skip
            slot.worker.run()
        except NAMED_ENDS as error:
            ended = error
        except Exception as error:
            self.scheduler.tell(f"{process.name} ENDS with {type(error).__name__}: {error}")
            raise
        self.scheduler.tell(f"{process.name} ends{'' if ended is None else f' with {ended!r}'}")
        slot.at_work = False
        if not slot.stop:
            self.scheduler.after(1.0, lambda: self._start(slot))

    def _plan(self, chance: Random, slots: int) -> list[Strike]:
        wanted = chance.sample(FAULTS, chance.randint(1, len(FAULTS)))
        rest_s = chance.choice((0.3, 2.0, 8.0))
        now_s, end_s = 0.0, chance.uniform(2, CHAOS_S)
        planned = []
        while (now_s := now_s + chance.random() * rest_s) < end_s:
            lasts_s = chance.choice((0.05, 1.0, 12.0)) * (0.5 + chance.random())
            planned.append(
                Strike(now_s, chance.choice(wanted), chance.randrange(slots), lasts_s, chance.random())
            )
        return planned

    def _disturb(self) -> None:
        """Faults, one after another and on top of each other, for a while; then good weather."""
        self.network.weather = self.weather
        self.broker.slow_markers_s, self.store.fails = self.slow_markers_s, self.store_fails
        for number, strike in enumerate(self.strikes):
            if self.only is None or number in self.only:
                self.scheduler.sleep(strike.at_s - self.scheduler.now_s)
                self._strike(number, strike)
        self.network.weather = Weather()
        self.broker.down, self.broker.stalled_until_s = False, 0.0
        self.broker.slow_markers_s, self.store.fails = MARKER_S, 0.0
        for slot in self.slots:
            if slot.process is not None:
                slot.process.paused = False
        self.scheduler.tell("quiet")

    def _strike(self, number: int, strike: Strike) -> None:
        scheduler, slot = self.scheduler, self.slots[strike.slot]
        process = slot.process
        assert process is not None
        scheduler.tell(f"strike {number}: {strike.fault}, {process.name}, {strike.lasts_s:.2f} s")
        match strike.fault:
            case "kill" if slot.at_work and not process.dead:
                scheduler.crash(process)
                slot.at_work = False
                scheduler.after(strike.part * 3, lambda: self._start(slot))
            case "pause" if not process.dead:
                process.paused = True
                scheduler.after(strike.lasts_s, lambda: setattr(process, "paused", False))
            case "broker away":
                self.broker.down = True
                scheduler.after(strike.lasts_s, lambda: setattr(self.broker, "down", False))
            case "broker stalls":
                self.broker.stalled_until_s = scheduler.now_s + strike.lasts_s
            case "silence":
                self.network.weather.silent = True
                scheduler.after(strike.lasts_s, lambda: setattr(self.network.weather, "silent", False))
            case "evict":
                self.broker.evict(f"{self.settings.group}-{slot.name}")
            case "clock":
                process.clock_is_off_s = 7_200 * (strike.part - 0.5)
            case "torn checkpoint":
                for name in list(self.store.kept)[-1:]:
                    content, at_s = self.store.kept[name]
                    self.store.kept[name] = content[: round(strike.part * len(content))], at_s

    def _until(self, met: Callable[[], Any], limit_s: float, wanted: str) -> None:
        def seen() -> Any:
            if self.scheduler.failed:
                task, error = self.scheduler.failed[0]
                raise Failure(f"{task.process.name}, {task.name}: {type(error).__name__}: {error}") from error
            return met()

        try:
            self.scheduler.run(seen, limit_s)
        except Stuck as error:
            raise Failure(f"not reached: {wanted}: {error}") from error

    # --- what must be true -----------------------------------------------------------------------

    def _worked_off(self) -> bool:
        group = self.broker.group
        if group.pending:
            return False
        return all(
            (position := group.committed.get(p)) is not None
            and (position.examples, position.labels)
            == tuple(self.broker.log((topic, p)).end for topic in INPUTS)
            for p in range(self.broker.partitions)
            if any(self.broker.log((topic, p)).end for topic in INPUTS)
        )

    def _check(self) -> None:
        view: Any = View(self.broker)
        findings = examine(view, self.settings.messages, (), Findings(3))
        if findings.differences:
            raise Failure(f"audit: {[each._asdict() for each in findings.first]}")
        if self._everywhere_worked() and self.settings.labels.remember > len(self.records):
            # An id that was forgotten may be predicted again, which the recount does not know.
            found = recount(view, self.settings.labels.remember)
            for slot in self.slots:
                held = None if slot.worker is None else slot.worker.held
                if held is not None and whole(held, found.updates):
                    digest = held.state.model.digest()
                    if digest != found.digest:
                        raise Failure(f"{slot.name} holds {digest}, the log {found.digest}")

    def _everywhere_worked(self) -> bool:
        return all(self.broker.group.committed.get(p) is not None for p in range(self.broker.partitions))


def whole(held: WorkerState, updates: Sequence[int]) -> bool:
    """Whether this worker had heard of all updates when it stopped."""
    return list(held.state.model.updates) == list(updates)


def settings_of(chance: Random) -> Settings:
    """Small numbers, so that everything happens within a few records."""
    return Settings.model_validate(
        {
            "log": {"url": "kafka://simulated:9092", "prefix": "s."},
            "labels": {
                "max_delay": chance.choice((0.5, 20)), "parking": chance.choice((0.2, 10)),
                "max_waiting": chance.choice((10, 1_000)), "remember": chance.choice((20, 100_000, 100_000)),
            },
            "batch": {"max_records": chance.choice((3, 10, 50)), "max_delay": 0},
            "checkpoint": {
                "url": chance.choice(("simulated", "simulated", "")), "every": chance.choice((0.5, 5)),
                "every_updates": chance.choice((5, 50)),
            },
        }
    )  # fmt: skip


FAULTS = (
    "kill", "pause", "broker away", "broker stalls", "silence", "evict", "clock", "torn checkpoint",
)  # fmt: skip
