"""What each fault does to a run, and what is noticed of it from outside."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mistakebound.core.messages.schema import read_recovery_point
from mistakebound.core.records import OUTPUTS
from tests.simulate.broker import SESSION_S
from tests.simulate.checks import Failure
from tests.simulate.client import OUTPUTS_SENT, POSITIONS_TOLD
from tests.simulate.run import Run
from tests.simulate.strikes import OF_LOG, OF_NETWORK, Strike

if TYPE_CHECKING:
    from tests.simulate.fleet import Simulation, Slot

AWAY_NOTICED_S = 45.0
"""A worker whose log has been away for so long says that it is not ready."""
EVERY_S = 1.0
OVERTAKEN_S = SESSION_S + 2.0
"""Who stands still for so long has lost its partitions, and others have gone on."""
AMID = 0.5
"""Share of evictions that wait for a transaction, which then cannot be committed."""
ITS_LINE_S = 0.5
BAD_LINE = 0.3
"""Share of requests whose connection ends."""


class Striking:
    """Strikes one run."""

    def __init__(self, run: "Simulation") -> None:
        self._run = run
        self.offsets_lost = False
        self._rough_until_s = 0.0 if run.world.is_calm else float("inf")
        self._woken_s: dict[Run, float] = {}
        """When each process was woken last."""
        self._away_s: float | None = None
        """Since when the brokers answer nobody."""
        self._strangers: list[Callable[[], None]] = []

    def strike(self, strike: Strike, slot: "Slot") -> None:
        if strike.fault in OF_NETWORK:
            self._cut_off(strike)
        elif strike.fault in OF_LOG:
            self._change_log(strike)
        else:
            self._hit(strike, slot)

    def _hit(self, strike: Strike, slot: "Slot") -> None:
        """One process."""
        run, scheduler = slot.run, self._run.scheduler
        assert run is not None
        match strike.fault:
            case "kill" if run.at_work:
                self._run.end(run)
                scheduler.after(strike.part * 3, lambda: self._run.start(slot))
            case "stop" if run.at_work and run.stopped_s is None:
                self._run.ask_to_stop(run)
            case "pause" if run.at_work:
                self._pause(run, strike.lasts_s)
            case "overtaken" if run.at_work:
                if strike.part < AMID:
                    self.overtake(slot, OVERTAKEN_S + strike.lasts_s)
                else:  # what it holds is still right, unless others come in between
                    self._await_takeover(run, OVERTAKEN_S + strike.lasts_s)
                    self._evict(slot, run)
            case "double" if run.at_work and run.stopped_s is None and not slot.doubles:
                self._pause(run, strike.lasts_s)
                slot.doubles.append(run)
                self._run.start(slot)
            case "evict" if strike.part < AMID:
                run.process.awaited[OUTPUTS_SENT] = lambda: self._evict(slot, run)
            case "evict":
                self._evict(slot, run)
            case "clock":
                run.process.clock_is_off_s = 7_200 * (strike.part - 0.5)

    def _cut_off(self, strike: Strike) -> None:
        """Everybody."""
        scheduler, broker, weather = self._run.scheduler, self._run.broker, self._run.network.weather
        self._rough_until_s = max(self._rough_until_s, scheduler.now_s + strike.lasts_s)
        match strike.fault:
            case "broker away":
                broker.down = True
                scheduler.after(strike.lasts_s, lambda: setattr(broker, "down", False))
            case "leader away":
                leaders = self._run.network.leaders
                leaders.lose(int(strike.part * leaders.brokers), strike.lasts_s)
            case "leaders move":
                self._run.network.leaders.move()
            case "broker stalls":
                broker.stalled_until_s = scheduler.now_s + strike.lasts_s
            case "disk full":
                broker.disk_full_until_s = scheduler.now_s + strike.lasts_s
            case "bad line":
                weather.ends = BAD_LINE
                usual = self._run.world.weather.ends
                scheduler.after(strike.lasts_s, lambda: setattr(weather, "ends", usual))
            case "silence":
                weather.silent = True
                scheduler.after(strike.lasts_s, lambda: setattr(weather, "silent", False))

    def _change_log(self, strike: Strike) -> None:
        match strike.fault:
            case "torn checkpoint":
                self._tear(strike.part)
            case "retention":
                self._forget(strike.part)
            case "stranger":
                self._leave_open(strike)
            case "offsets lost":
                self.offsets_lost = True
                self._run.broker.group.committed.clear()

    def calm_down(self) -> None:
        """Everything that lasts is over."""
        broker = self._run.broker
        self._run.network.weather.silent = broker.down = False
        self._run.network.leaders.return_all()
        broker.stalled_until_s = broker.disk_full_until_s = 0.0
        for abort in self._strangers:
            abort()
        for run in self._run.runs():
            if run.process.paused:
                self._wake(run)
        self._rough_until_s = self._run.scheduler.now_s

    def was_calm_for(self, run: Run, seconds: float) -> bool:
        """Whether nothing has held up this process for so long."""
        begun_s = self._run.scheduler.now_s - seconds
        rough_s = max(self._rough_until_s, self._woken_s.get(run, 0.0))
        return not run.process.paused and rough_s <= begun_s

    def look_on(self) -> None:
        """Again and again: a worker whose log has been away for long must not say that it is ready."""
        broker, now_s = self._run.broker, self._run.scheduler.now_s
        away = broker.down or self._run.network.weather.silent or now_s < broker.stalled_until_s
        self._away_s = (now_s if self._away_s is None else self._away_s) if away else None
        if self._away_s is not None:
            for run in self._run.runs():
                since_s = max(self._away_s, run.began_s, self._woken_s.get(run, 0.0))
                if not run.process.paused and now_s - since_s > AWAY_NOTICED_S and run.is_ready:
                    raise Failure(
                        f"{run.process.name} is ready, and its log away for {now_s - since_s:.0f} s"
                    )
        self._run.scheduler.after(EVERY_S, self.look_on)

    def overtake(self, slot: "Slot", seconds: float) -> None:
        """Start it anew, and let it stand still amid its first takeover."""
        assert slot.run is not None
        self._run.end(slot.run)
        self._run.start(slot)
        self._await_takeover(slot.run, seconds)

    def _await_takeover(self, run: Run, seconds: float) -> None:
        run.process.awaited[POSITIONS_TOLD] = lambda: self._pause(run, seconds)

    def _evict(self, slot: "Slot", run: Run) -> None:
        """At times what it does next, as an abort, is on a bad line as well."""
        scheduler = self._run.scheduler
        if scheduler.random.random() < AMID:
            self._run.network.worse_until_s[run.process.name] = scheduler.now_s + ITS_LINE_S
            self._rough_until_s = max(self._rough_until_s, scheduler.now_s + ITS_LINE_S)
        self._run.broker.evict(f"{self._run.settings.group}-{slot.name}")

    def _pause(self, run: Run, seconds: float) -> None:
        run.process.paused = True
        self._run.scheduler.after(seconds, lambda: self._wake(run))

    def _wake(self, run: Run) -> None:
        run.process.paused = False
        self._woken_s[run] = self._run.scheduler.now_s

    def _tear(self, part: float) -> None:
        kept = self._run.store.kept
        for name in list(kept)[-1:]:
            content, at_s = kept[name]
            kept[name] = content[: round(part * len(content))], at_s

    def _forget(self, part: float) -> None:
        """As retention does: input that was read, and outputs that no recovery needs."""
        broker = self._run.broker
        for p, position in broker.group.committed.items():
            point = read_recovery_point(position)
            needed: dict[Any, int] = {"examples": position.examples, "labels": position.labels}
            needed |= {"predictions": point.predictions, "outcomes": point.outcomes}
            for topic, bound in needed.items():
                log = broker.log((topic, p))
                broker.forget((topic, p), log.low + round(part * (bound - log.low)))

    def _leave_open(self, strike: Strike) -> None:
        scheduler, broker = self._run.scheduler, self._run.broker
        if scheduler.now_s < broker.disk_full_until_s:
            return
        topic = OUTPUTS[round(strike.part * 1_000) % len(OUTPUTS)]
        at = topic, round(strike.part * 1_000_000) % broker.partitions
        abort = broker.leave_open(f"stranger-{len(self._strangers)}", at)
        self._strangers.append(abort)
        scheduler.after(strike.lasts_s, abort)
