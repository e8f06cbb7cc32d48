"""Whether the worker is live and whether it is ready, judged by the work it finishes, never by an open port.

- Not live: the loop has been silent for longer than the group allows, or records wait in a partition on which
  no step was completed for `stalled_after_s`. A restart may help.
- Live, not ready: starting, restoring, draining, the broker is away, the schema registry is, or is still asked, or labels lie where
  their examples are not. A restart would not help.
- Ready: everything else; an idle worker too.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mistakebound.worker import events


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """How long is too long, in seconds."""

    stalled_after_s: float = 30.0
    """A partition with lag and no completed step."""
    silent_after_s: float = 300.0
    """The whole loop; the group's max_poll_interval."""
    restoring_after_s: float = 3_600.0
    """The loop while it restores: each read has a deadline of its own, and the log may be long."""


@dataclass(frozen=True, slots=True)
class PartitionVitals:
    """Progress of one partition; times are the monotonic clock's seconds."""

    lag: int
    """Records waiting on both inputs, as last known."""
    progress_s: float
    """When a step on it was last completed or its lag fell, or, if later, when it was assigned or its lag began."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """What the loop last reported."""

    phase: events.Phase
    reachable: bool
    """Whether the log answers."""
    beat_s: float
    """When the loop last reported an event, on the monotonic clock."""
    partitions: Mapping[int, PartitionVitals] = field(default_factory=dict)
    misplaced_labels: int = 0
    """Labels known to lie in other partitions than their examples."""
    registry_answers: bool = True


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One partition as an operator reads it."""

    partition: int
    lag: int
    seconds_without_progress: float
    """0 when nothing waits."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the worker is live and ready, and the reasons."""

    live: bool
    ready: bool
    reason: str
    """One sentence; `ok` when ready."""
    state: events.Phase
    seconds_since_beat: float
    partitions: Sequence[PartitionHealth]
    misplaced_labels: int = 0

    def as_json(self) -> dict[str, Any]:
        """The body of `/healthz` and `/readyz`, and what `health --json` prints."""
        return asdict(self)


HealthCheck = Callable[[], Health]
"""Judges now. Called in any thread."""


def judge(vitals: Vitals, now_s: float, limits: HealthLimits) -> Health:
    """The health at `now_s` (monotonic) of a worker that last reported `vitals`."""
    silence_s = max(0.0, now_s - vitals.beat_s)
    partitions = [
        PartitionHealth(p, each.lag, round(max(0.0, now_s - each.progress_s), 3) if each.lag > 0 else 0.0)
        for p, each in sorted(vitals.partitions.items())
    ]
    stalled = next(
        (each for each in partitions if each.seconds_without_progress > limits.stalled_after_s), None
    )
    live, ready, reason = True, False, "ok"
    if silence_s > (limits.restoring_after_s if vitals.phase == "restoring" else limits.silent_after_s):
        live, reason = False, f"the loop has been silent for {silence_s:.0f} s; restart the worker"
    elif not vitals.reachable:
        reason = "the log does not answer; the worker goes on when it does"
    elif not vitals.registry_answers:
        reason = "the schema registry owes answers; the worker goes on when they are there"
    elif vitals.phase != "running":
        reason = f"the worker is {vitals.phase}"
    elif stalled is not None:
        live = False
        reason = (
            f"partition {stalled.partition} has {stalled.lag} records waiting and completed no step for "
            f"{stalled.seconds_without_progress:.0f} s; restart the worker"
        )
    elif vitals.misplaced_labels:
        reason = (
            f"at least {vitals.misplaced_labels} labels lie in other partitions than their examples, and are not "
            "learned from; all producers must place keys alike"
        )
    else:
        ready = True
    silence_s = round(silence_s, 3)
    return Health(live, ready, reason, vitals.phase, silence_s, partitions, vitals.misplaced_labels)


class Heartbeat:
    """What the loop last reported: an observer of the loop, which the HTTP threads may read at any time.

    Every event is a beat. While the loop restores or waits for a commit there are no beats: these have limits
    of their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is monotonic, in s."""
        self._clock = clock
        self._lock = threading.Lock()
        self._phase: events.Phase = "starting"
        self._reachable = True
        self._beat_s = clock()
        self._partitions: dict[int, PartitionVitals] = {}
        self._misplaced_labels = 0
        self._registry_answers = True

    def observe(self, event: events.Event) -> None:
        """Waiting times begin anew with a new phase, and when the log is back: nothing could progress before."""
        with self._lock:
            now_s = self._beat_s = self._clock()
            match event:
                case events.PhaseEntered(phase):
                    if phase != self._phase:
                        self._begin_anew()
                    self._phase = phase
                case events.Assigned(totals=owned):
                    if not self._reachable:
                        self._begin_anew()
                    self._reachable = True
                    new = PartitionVitals(0, now_s)
                    self._partitions = {each: self._partitions.get(each, new) for each in owned}
                case events.StateDropped():
                    self._partitions = {}
                case events.LogUnreachable() | events.RegistryAnswers() | events.LabelsMisplaced():
                    self._note(event)
                case events.StepCommitted(totals=touched):
                    for each in touched:
                        if each in self._partitions:
                            self._partitions[each] = PartitionVitals(self._partitions[each].lag, now_s)
                case events.LagMeasured(records):
                    waiting: dict[int, int] = {}
                    for (_, partition), count in records.items():
                        waiting[partition] = waiting.get(partition, 0) + count
                    self._wait(waiting, now_s)

    def vitals(self) -> Vitals:
        """A consistent copy of everything."""
        with self._lock:
            partitions = dict(self._partitions)
            return Vitals(
                self._phase,
                self._reachable,
                self._beat_s,
                partitions,
                self._misplaced_labels,
                self._registry_answers,
            )

    def health(self, limits: HealthLimits) -> Health:
        """The judgement now."""
        return judge(self.vitals(), self._clock(), limits)

    def _wait(self, waiting: Mapping[int, int], now_s: float) -> None:
        """Records waiting on both inputs of each owned partition; others are ignored."""
        for each, lag in waiting.items():
            known = self._partitions.get(each)
            if known is not None:
                # It falls without a step where aborted records are passed: a worker may do that for a while.
                moves = lag < known.lag or (known.lag == 0 and lag > 0)
                self._partitions[each] = PartitionVitals(lag, now_s if moves else known.progress_s)

    def _note(self, event: events.LogUnreachable | events.RegistryAnswers | events.LabelsMisplaced) -> None:
        """What keeps the worker from being ready, or no longer does."""
        match event:
            case events.LogUnreachable():
                self._reachable = False
            case events.LabelsMisplaced(count):
                self._misplaced_labels = count
            case events.RegistryAnswers(answers):
                if answers:
                    self._begin_anew()
                self._registry_answers = answers

    def _begin_anew(self) -> None:
        self._partitions = {
            each: PartitionVitals(known.lag, self._beat_s) for each, known in self._partitions.items()
        }
