"""Health is judged by progress: what counts as dead, as not ready, and as fine."""

import threading
import time

import pytest

from mistakebound.worker.events import (
    PHASES,
    LabelsMisplaced,
    LogUnreachable,
    Phase,
    PhaseEntered,
    PollReturned,
)
from mistakebound.worker.health import HealthLimits, Heartbeat, PartitionVitals, Vitals, judge
from tests.worker.support.events import assigned, progressed, waiting

LIMITS = HealthLimits(stalled_after_s=30.0, silent_after_s=300.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def running(
    partitions: dict[int, PartitionVitals], phase: Phase = "running", reachable: bool = True
) -> Vitals:
    return Vitals(phase, reachable, beat_s=1_000.0, partitions=partitions)


def test_an_idle_worker_is_ready() -> None:
    """No lag and an old step is a quiet topic, not a fault."""
    health = judge(running({0: PartitionVitals(lag=0, progress_s=0.0)}), 1_000.0, LIMITS)
    assert (health.live, health.ready, health.reason) == (True, True, "ok")
    assert health.partitions[0].seconds_without_progress == 0


@pytest.mark.parametrize(("age_s", "alive"), [(30.0, True), (30.5, False)])
def test_a_partition_with_lag_and_no_completed_step_is_dead(age_s: float, alive: bool) -> None:
    """One stuck partition is enough, whatever the others do, and the reason names it."""
    partitions = {0: PartitionVitals(9, 1_000.0), 3: PartitionVitals(7, 1_000.0 - age_s)}
    health = judge(running(partitions), 1_000.0, LIMITS)
    assert health.live is health.ready is alive
    assert ("partition 3 has 7 records waiting" in health.reason) is not alive


def test_a_silent_loop_is_dead_whatever_else_it_said() -> None:
    """A loop that does not come round within its limit is stuck; a rebuild may take longer than a step."""
    for phase in PHASES:
        limit_s = 3_600.0 if phase == "restoring" else 300.0
        for reachable in (True, False):
            health = judge(Vitals(phase, reachable, beat_s=0.0), limit_s + 0.5, LIMITS)
            assert not health.live
            assert "the loop has been silent for" in health.reason
            assert judge(Vitals(phase, reachable, beat_s=0.0), limit_s - 0.5, LIMITS).live


@pytest.mark.parametrize("phase", ["starting", "restoring", "draining"])
def test_a_worker_that_does_not_serve_is_live_but_not_ready(phase: Phase) -> None:
    """A long rebuild with lag is no reason to kill the worker: it would begin again."""
    health = judge(running({0: PartitionVitals(9, 0.0)}, phase), 1_000.0, LIMITS)
    assert (health.live, health.ready) == (True, False)
    assert phase in health.reason


def test_a_broker_that_is_away_leaves_the_worker_live_but_not_ready() -> None:
    """Restarting every worker would not bring the broker back."""
    health = judge(running({0: PartitionVitals(9, 0.0)}, reachable=False), 1_000.0, LIMITS)
    assert (health.live, health.ready) == (True, False)
    assert "does not answer" in health.reason


def test_waiting_counts_from_the_moment_that_lag_began() -> None:
    """The first record after an idle hour does not make the worker look dead."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(assigned([0]))
    clock.now_s += 3_600
    heartbeat.observe(waiting({0: 5}))
    assert heartbeat.health(LIMITS).live
    clock.now_s += 31
    heartbeat.observe(waiting({0: 8}))
    assert not heartbeat.health(LIMITS).live


def test_passing_what_was_aborted_is_progress() -> None:
    """No step is made of aborted records, and a long tail of them is read for longer than a step may take."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(assigned([0]))
    for left in range(1_000_000, 0, -100_000):
        heartbeat.observe(waiting({0: left}))
        clock.now_s += 20
        assert heartbeat.health(LIMITS).ready
    clock.now_s += 11
    assert not heartbeat.health(LIMITS).live


def test_a_completed_step_is_progress_of_its_partitions_only() -> None:
    """Steps elsewhere do not hide a stuck partition."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(assigned([0, 1]))
    heartbeat.observe(waiting({0: 5, 1: 5}))
    for _ in range(4):
        clock.now_s += 10
        heartbeat.observe(progressed(0))
    assert {
        each.partition: each.seconds_without_progress for each in heartbeat.health(LIMITS).partitions
    } == {
        0: 0.0,
        1: 40.0,
    }
    assert not heartbeat.health(LIMITS).live
    heartbeat.observe(progressed(1))
    assert heartbeat.health(LIMITS).ready


def test_a_partition_that_moved_away_is_forgotten_and_one_that_comes_begins_anew() -> None:
    """Only owned partitions are judged, from their assignment on; kept ones keep their age."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(assigned([0, 1]))
    heartbeat.observe(waiting({0: 5, 1: 5}))
    clock.now_s += 40
    heartbeat.observe(assigned([1, 2]))
    heartbeat.observe(waiting({0: 99, 2: 5}))
    ages = {each.partition: each.seconds_without_progress for each in heartbeat.health(LIMITS).partitions}
    assert ages == {1: 40.0, 2: 0.0}


def test_time_without_the_broker_or_in_a_rebuild_is_not_counted() -> None:
    """Once the broker is back, or the rebuild done, the worker has its full time to progress."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(assigned([0]))
    heartbeat.observe(waiting({0: 5}))
    heartbeat.observe(LogUnreachable())
    clock.now_s += 200
    heartbeat.observe(assigned([0]))
    assert heartbeat.health(LIMITS).ready
    heartbeat.observe(PhaseEntered("restoring"))
    clock.now_s += 200
    heartbeat.observe(PhaseEntered("running"))
    assert heartbeat.health(LIMITS).ready


def test_beats_keep_a_long_rebuild_alive() -> None:
    """A rebuild that beats as it goes is live for as long as it takes."""
    clock = Clock()
    heartbeat = Heartbeat(clock)
    heartbeat.observe(PhaseEntered("restoring"))
    for _ in range(10):
        clock.now_s += 3_000
        heartbeat.observe(PollReturned(0.0))
    assert heartbeat.health(LIMITS).live
    clock.now_s += 3_601
    assert not heartbeat.health(LIMITS).live


def test_readers_never_see_a_half_written_state() -> None:
    """The loop writes while probes read; a reader gets all partitions of one assignment."""
    heartbeat = Heartbeat()
    heartbeat.observe(PhaseEntered("running"))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            heartbeat.observe(assigned(range(8)))
            heartbeat.observe(assigned(range(8, 16)))
            time.sleep(0)  # else it takes the lock again before a reader gets it, for seconds

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = {tuple(heartbeat.vitals().partitions) for _ in range(2_000)}
    finally:
        stop.set()
        writer.join()
    assert seen <= {(), tuple(range(8)), tuple(range(8, 16))}


def test_the_judgement_reads_as_json() -> None:
    """Probes and `health --json` show what the judgement rests on."""
    health = judge(running({0: PartitionVitals(4, 988.0)}), 1_000.0, LIMITS)
    assert health.as_json() == {
        "live": True,
        "ready": True,
        "reason": "ok",
        "state": "running",
        "seconds_since_beat": 0.0,
        "partitions": [{"partition": 0, "lag": 4, "seconds_without_progress": 12.0}],
        "misplaced_labels": 0,
    }


def test_labels_that_cannot_meet_their_examples_leave_the_worker_live_but_not_ready() -> None:
    """Until there are none any more: it predicts as before, and a restart would not help."""
    heartbeat = Heartbeat()
    heartbeat.observe(PhaseEntered("running"))
    heartbeat.observe(LabelsMisplaced(40))
    health = heartbeat.health(LIMITS)
    assert (health.live, health.ready, health.misplaced_labels) == (True, False, 40)
    assert "at least 40 labels lie in other partitions than their examples" in health.reason
    heartbeat.observe(LabelsMisplaced(0))
    assert heartbeat.health(LIMITS).ready
