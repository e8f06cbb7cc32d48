"""One seed: workers, a stream, faults; and what must be true when all is quiet again."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any

import structlog

from mistakebound.core.records import INPUTS, Outgoing, Topic
from mistakebound.worker.process import DRAIN_S
from mistakebound.worker.takeover import NOTHING, Accepted
from tests.simulate.broker import MARKER_S, SESSION_S, Broker
from tests.simulate.checks import Failure, check_records, updates_of
from tests.simulate.client import Client
from tests.simulate.disasters import Disaster
from tests.simulate.network import Network, Weather
from tests.simulate.run import REFUSALS, Run
from tests.simulate.scheduler import Process, Scheduler, Stuck
from tests.simulate.stand_ins import BEGUN_S, installed
from tests.simulate.store import Store
from tests.simulate.strikes import CHAOS_S, FAULTS, Strike, planned
from tests.simulate.striking import Striking
from tests.simulate.trials import Trial
from tests.simulate.world import world_of

QUIET_S = 400.0
"""Within so much virtual time after the last fault everything must be worked off."""
LEVEL_S = 60.0
"""Within so much every worker is ready and has heard of every update."""
ONE_LEFT_S = 200.0
"""Within so much one of two workers in a slot has ended."""
AGAIN_S = 1.0
"""After so long a supervisor starts a worker again."""
MOST_PROBES = 5
LOOK_S = 0.1
"""Between two looks at whether something was reached."""


@dataclass(eq=False)
class Slot:
    """One worker under its supervisor."""

    name: str
    run: Run | None = None
    runs: int = 0
    doubles: list[Run] = field(default_factory=list)
    """Processes that the supervisor took for dead."""


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
    faults: Collection[str] = FAULTS
    """Kinds of strikes that there may be."""
    slots: list[Slot] = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.seed)
        self.world = world_of(self.seed, self.workers, self.client)
        self.settings = self.world.settings
        self.broker = Broker(
            self.scheduler, self.world.partitions, self._now_ms, most_bytes=self.world.most_bytes
        )
        self.network = Network(self.scheduler, self.broker, self.world.brokers)
        self.store = Store(self.scheduler)
        self.slots = [Slot(f"slot-{number}") for number in range(self.world.workers)]
        self.records = self.world.records[: self.most_records]
        chance = Random(f"{self.seed} faults")
        self.strikes = planned(chance, len(self.slots), self.faults)
        self.disaster = Disaster(self, chance)
        self.trial = Trial(self)
        self.accepted = NOTHING
        """What the operator accepts by now."""
        self.striking = Striking(self)
        self._sent = self.quiet = self.over = self.must_refuse = False
        self._probes: list[tuple[int, str]] = []
        """Partitions and ids of the newest."""
        self._probed = 0

    def run(self) -> None:
        """Raises Failure, or what a worker should never have ended with."""
        structlog.configure(processors=[self._tell])
        with installed(self.scheduler, lambda *_: self.store):
            for slot in self.slots:
                self.start(slot)
            self.scheduler.spawn(self._produce, "producer")
            chaos = self.scheduler.spawn(self._disturb, "chaos")
            self.striking.look_on()
            self.until(lambda: self._sent and chaos.done, 4 * CHAOS_S, "the faults end")
            self.append_probes()
            self.until(self.worked_off, QUIET_S, "everything is worked off")
            self._end_doubles()
            self._label_probes()
            self.until(self.worked_off, QUIET_S, "the last labels are worked off")
            self.until(self.is_level, LEVEL_S, "every worker is ready and has all updates")
            self.trial.take_place()
            self.disaster.meets_the_running()
            self.stop_all()
            self._check()
            self.disaster.meets_the_starting()

    # --- the world -------------------------------------------------------------------------------

    def _tell(self, logger: object, method: str, event: Any) -> Any:
        """What workers log is part of the story."""
        who = self.scheduler.task.process.name if self.scheduler.in_task else "nobody"
        self.scheduler.tell(f"{who} {event.pop('event')} {event}")
        raise structlog.DropEvent

    def _now_ms(self) -> int:
        return round((BEGUN_S + self.scheduler.now_s) * 1000)

    def _produce(self) -> None:
        chance = self.scheduler.random
        done = 0
        while done < len(self.records):
            count = chance.randrange(1, 20)
            self.broker.append(self.records[done : done + count])
            done += count
            self.scheduler.sleep(chance.random() * (0.1 if self.quiet else self.world.pace_s))
        self._sent = True

    def append_probes(self) -> None:
        """A few examples in each partition, so that each has work."""
        self._probed += 1
        self._probes = [
            (p, f"probe-{self._probed}-{p}-{number}")
            for p in range(self.broker.partitions)
            for number in range(self.scheduler.random.randrange(1, MOST_PROBES + 1))
        ]
        for p, record_id in self._probes:
            self._append("examples", p, record_id, '"features": {"x0": 1.0}')

    def _label_probes(self) -> None:
        """Of the newest; some get none. What is applied was predicted in an earlier step."""
        for p, record_id in self._probes:
            if self.scheduler.random.random() < 0.7:
                self._append("labels", p, record_id, '"label": false')

    def _append(self, topic: Topic, p: int, record_id: str, content: str) -> None:
        newest = self.records[-1].timestamp_ms if self.records else self._now_ms()
        value = f'{{"id": "{record_id}", {content}}}'.encode()
        self.broker.append([Outgoing(topic, p, record_id.encode(), value, (), newest)])

    # --- workers ---------------------------------------------------------------------------------

    def start(self, slot: Slot) -> None:
        """Another process in this slot; unless everything is over."""
        if self.over:
            return
        slot.runs += 1
        process = Process(f"{slot.name}.{slot.runs}")
        run = slot.run = Run(slot.name, process, self.scheduler.now_s, self.accepted)
        self.scheduler.spawn(lambda: self._work(slot, run), process.name, process)
        self.scheduler.tell(f"{process.name} starts")

    def runs(self) -> list[Run]:
        """All processes at work, also those that a supervisor took for dead."""
        runs = [run for slot in self.slots for run in (slot.run, *slot.doubles)]
        return [run for run in runs if run is not None and run.at_work]

    def end(self, run: Run) -> None:
        """Its process ends here and now."""
        run.at_work = False
        self.scheduler.crash(run.process)

    def ask_to_stop(self, run: Run) -> None:
        """As SIGTERM does; after ten seconds the process ends itself, which must not be needed in calm weather."""
        run.stopped_s = self.scheduler.now_s

        def look() -> None:
            if run.at_work:
                if self.striking.was_calm_for(run, DRAIN_S):
                    raise Failure(f"{run.process.name} did not stop within {DRAIN_S:g} s")
                self.scheduler.tell(f"{run.process.name} ends itself amid its drain")
                self.end(run)
                self._start_again(run)

        self.scheduler.after(DRAIN_S, look)

    def _work(self, slot: Slot, run: Run) -> None:
        try:
            run.work(self.settings, self.network, self.world.client)
        except Exception as error:
            self.scheduler.tell(f"{run.process.name} ENDS with {type(error).__name__}: {error}")
            raise
        ended = run.ended
        self.scheduler.tell(f"{run.process.name} ends{'' if ended is None else f' with {ended!r}'}")
        if isinstance(ended, REFUSALS) and not self.must_refuse:
            if not (self.striking.offsets_lost and "--resume-from-outcomes" in str(ended)):
                raise Failure(f"{run.process.name} refuses: {ended}") from ended
            self.accepted = Accepted(lost_offsets=True)
        stays = run.stopped_s is not None and run.log is not None and run.log.is_member
        if stays and self.striking.was_calm_for(run, self.scheduler.now_s - (run.stopped_s or 0.0)):
            raise Failure(f"{run.process.name} ends and does not leave the group")
        run.at_work = False
        self.scheduler.after(0.0, lambda: self.scheduler.crash(run.process))
        self._start_again(run)

    def _start_again(self, run: Run) -> None:
        """A supervisor does; not a process that it took for dead."""
        slot = next(each for each in self.slots if each.name == run.slot)
        if slot.run is run and not (self.must_refuse or self.over):
            self.scheduler.after(AGAIN_S, lambda: self.start(slot))

    # --- phases ----------------------------------------------------------------------------------

    def _disturb(self) -> None:
        """Faults, one after another and on top of each other, for a while; then good weather."""
        world = self.world
        self.network.weather = Weather(world.weather.delay_s, world.weather.ends)
        self.broker.slow_markers_s, self.store.fails = world.slow_markers_s, world.store_fails
        for number, strike in enumerate(self.strikes):
            if self.only is None or number in self.only:
                self.scheduler.sleep(strike.at_s - self.scheduler.now_s)
                self._strike(number, strike)
        self.quiet = True
        self.striking.calm_down()
        self.network.weather = Weather()
        self.broker.slow_markers_s, self.store.fails = MARKER_S, 0.0
        self.scheduler.tell("quiet")

    def _strike(self, number: int, strike: Strike) -> None:
        slot = self.slots[strike.slot]
        assert slot.run is not None
        self.scheduler.tell(
            f"strike {number}: {strike.fault}, {slot.run.process.name}, {strike.lasts_s:.2f} s"
        )
        self.striking.strike(strike, slot)

    def _end_doubles(self) -> None:
        """Of two processes in one slot one ends, as soon as both have had something to write."""
        doubles = [run for slot in self.slots for run in slot.doubles if run.at_work]
        if len(self.slots) + len(doubles) > self.broker.partitions:  # some have nothing to write
            for run in doubles:
                run.stopped_s = self.scheduler.now_s

        def feed() -> None:
            if any(run.at_work for run in doubles):
                self.append_probes()
                self.scheduler.after(AGAIN_S, feed)

        feed()
        self.until(
            lambda: not any(run.at_work for run in doubles), ONE_LEFT_S, "one of two in a slot has ended"
        )
        self.until(self.worked_off, QUIET_S, "everything is worked off again")

    def stop_all(self) -> None:
        self.over = True
        for run in self.runs():
            self.ask_to_stop(run)
        self.until(lambda: not self.runs(), QUIET_S, "the workers have stopped")
        # A member whose join was never answered is there until its session is over; who knew its name has left.
        self.until(lambda: not self.broker.group.members, 2 * SESSION_S, "nobody is in the group")
        self.until(lambda: not any(log.open for log in self.broker.logs.values()), 60, "no transaction")

    def until(self, met: Callable[[], Any], limit_s: float, wanted: str) -> None:
        next_s = 0.0

        def seen() -> Any:
            nonlocal next_s
            if self.scheduler.failed:
                task, error = self.scheduler.failed[0]
                raise Failure(f"{task.process.name}, {task.name}: {type(error).__name__}: {error}") from error
            if self.scheduler.now_s < next_s:
                return False
            next_s = self.scheduler.now_s + LOOK_S
            return met()

        try:
            self.scheduler.run(seen, limit_s)
        except Stuck as error:
            raise Failure(f"not reached: {wanted}: {error}") from error

    # --- what must be true -----------------------------------------------------------------------

    def worked_off(self) -> bool:
        group = self.broker.group
        if group.pending:
            return False
        return all(
            (position := group.committed.get(p)) is not None
            and (position.examples, position.labels)
            == tuple(self.broker.log((topic, p)).end for topic in INPUTS)
            for p in range(self.broker.partitions)
        )

    def is_level(self) -> bool:
        known = updates_of(self.broker)
        return all(
            (run := slot.run) is not None
            and run.at_work
            and run.is_ready
            and run.worker is not None
            and run.worker.held is not None
            and list(run.worker.held.state.model.updates) == known
            for slot in self.slots
        )

    def _check(self) -> None:
        held = [
            (slot.name, slot.run.worker.held)
            for slot in self.slots
            if slot.run is not None and slot.run.worker is not None and slot.run.worker.held is not None
        ]
        check_records(self.broker, self.settings, held)
