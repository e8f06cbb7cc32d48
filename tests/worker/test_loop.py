"""The worker's loop: after any sequence of faults the topics hold what an undisturbed run leaves there."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mistakebound.core.records import INPUTS, Transaction
from mistakebound.core.replay.replay import replay_records
from mistakebound.log.protocol import Fenced, Session, TransactionFailed, Unreachable
from mistakebound.worker import loop
from mistakebound.worker.health import HealthLimits, Heartbeat
from mistakebound.worker.rebuilds import GaveUp
from mistakebound.worker.takeover import WorkerState
from tests.support.tries import long, tried
from tests.worker.support import working
from tests.worker.support.faulty import COMMIT_FAULTS, POLL_FAULTS, FaultyLog
from tests.worker.support.working import (
    Hurried,
    Recount,
    Run,
    example,
    label,
    opened,
    settings_for,
    stream,
    written,
)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for a broker that is away takes no time here."""
    monkeypatch.setattr(loop, "time", Hurried())


@pytest.fixture(autouse=True)
def quiet() -> Iterator[list[Any]]:
    """What the worker logs."""
    with capture_logs() as said:
        yield said


EPOCH_OF = {"kind": "averaged-perceptron"}

single = st.tuples(
    st.one_of(
        st.tuples(st.tuples(st.just("commit"), st.integers(0, 14)), st.sampled_from(COMMIT_FAULTS)),
        st.tuples(st.tuples(st.just("poll"), st.integers(1, 40)), st.sampled_from(POLL_FAULTS)),
        st.tuples(st.tuples(st.just("drained"), st.integers(0, 12)), st.just("unreachable")),
        st.tuples(
            st.tuples(st.just("committed"), st.integers(1, 4)), st.sampled_from(("unreachable", "fenced"))
        ),
        st.tuples(st.tuples(st.just("join"), st.integers(1, 4)), st.just("unreachable")),
    )
).map(lambda one: one[0])


def at_most_one_fence(faults: dict[Any, str]) -> bool:
    return sum(fault == "fenced" for fault in faults.values()) <= 1


plans = st.lists(single, min_size=1, max_size=6).map(dict).filter(at_most_one_fence)


def disturbed(faults: dict[Any, str], partitions: int, folder: str) -> tuple[Any, FaultyLog, Run]:
    """Run over a fixed stream with these faults; everything that it left on the log."""
    rules = {"max_delay": 1000, "remember": 20, "max_waiting": 6}
    chosen = settings_for(
        learner=EPOCH_OF,
        labels=rules,
        batch={"max_records": 9},
        checkpoint={"url": folder, "every_updates": 4},
    )
    with opened(chosen, partitions) as log:
        log.append(stream(60, partitions=partitions))
        faulty = FaultyLog(log, faults)
        run = Run(faulty, chosen, stopping=lambda idle: idle and not faulty.shrunk)
        recount = Recount(log, chosen)
        assert run.held.state.model.digest() == recount.digest, "the fold is the worker's own model"
        return recount, faulty, run


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    """What one partition's run without any fault leaves behind."""
    with capture_logs():
        return disturbed({}, 1, "")[0].whole


@given(plans, st.booleans())
@tried(120, suppress_health_check=list(HealthCheck))
def test_faults_change_nothing_that_is_written(
    undisturbed: Any, faults: dict[Any, str], checkpoints: bool
) -> None:
    """One prediction per example, the same tallies and digest, wherever commits and polls fail."""
    with tempfile.TemporaryDirectory() as folder:
        recount, _, _ = disturbed(faults, 1, folder if checkpoints else "")
    assert recount.whole == undisturbed


@given(plans, st.booleans())
@tried(80, suppress_health_check=list(HealthCheck))
def test_faults_double_nothing_across_partitions(faults: dict[Any, str], checkpoints: bool) -> None:
    """With several partitions, and one that moves away and back, every example still ends once."""
    with tempfile.TemporaryDirectory() as folder:
        recount, _, run = disturbed(faults, 3, folder if checkpoints else "")
    assert len(recount.predicted) == 60
    ledgers = run.held.state.ledgers
    assert [ledgers[p].tallies for p in sorted(ledgers)] == recount.tallies


@pytest.mark.parametrize("fault", COMMIT_FAULTS)
@pytest.mark.parametrize("place", [0, 3, *long(1, 2, 4, 5)])
def test_one_fault_at_one_commit(undisturbed: Any, fault: str, place: int) -> None:
    """Each kind of failed commit, by itself, at each of the first commits."""
    recount, faulty, _ = disturbed({("commit", place): fault}, 1, "")
    assert faulty.happened == [fault]
    assert recount.whole == undisturbed


def test_it_is_not_ready_from_a_failed_transaction_until_it_has_taken_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no state meanwhile, and with its broker away that may last."""
    hearts: list[Heartbeat] = []
    monkeypatch.setattr(working, "Heartbeat", lambda: hearts.append(Heartbeat()) or hearts[-1])
    limits = HealthLimits(stalled_after_s=30.0, silent_after_s=300.0)
    reasons: list[str] = []

    class Joined(FaultyLog):
        def join(self, slot: str) -> Session:
            reasons.append(hearts[0].health(limits).reason)
            return super().join(slot)

    chosen = settings_for()
    with opened(chosen) as log:
        log.append(stream(20))
        run = Run(Joined(log, {("commit", 0): "failed"}), chosen)
    assert reasons == ["the worker is starting", "the worker is restoring"]
    assert run.heartbeat.vitals().phase == "draining"


# --- ends -----------------------------------------------------------------------------------------------


def test_too_many_rebuilds_end_the_worker() -> None:
    """Eleven failed transactions within five minutes: it gives up and says why, and nothing was written."""
    chosen = settings_for()
    with opened(chosen) as log:
        log.append(stream(20))
        faulty = FaultyLog(log, {("commit", -1): "failed"})
        with pytest.raises(GaveUp, match=r"rebuilt 11 times within 300 s, at last for: the transaction was"):
            Run(faulty, chosen)
        assert len(faulty.happened) == 11
        assert list(log.read("predictions", 0, 0)) == []


class _Slow:
    """A log whose network is too slow for a transaction of more than ten records."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Any:
        session = self._log.join(slot)
        commit = session.commit

        def slow(transaction: Transaction, generation: int) -> Any:
            if len(transaction.outputs) > 10:
                raise TransactionFailed("the batch was not acknowledged in time")
            return commit(transaction, generation)

        session.commit = slow
        return session


def test_a_network_too_slow_for_a_large_step_gets_smaller_ones() -> None:
    """Else the same step would fail until the worker gives up, now and after each restart."""
    settings = settings_for(batch={"max_records": 100})
    with opened(settings) as log:
        log.append(stream(60))
        Run(_Slow(log), settings)
        assert len(Recount(log, settings).predicted) == 60


def test_fenced_once_goes_on_and_fenced_again_ends() -> None:
    """Two processes that fight for one slot do not go on for ever."""
    chosen = settings_for()
    with opened(chosen) as log:
        log.append(stream(20))
        once = FaultyLog(log, {("commit", 0): "fenced"})
        Run(once, chosen)
        assert len(Recount(log, chosen).predicted) == 20
        log.append(stream(20, first=20))
        with pytest.raises(Fenced):
            Run(FaultyLog(log, {("commit", 0): "fenced", ("poll", 3): "fenced"}), chosen)


def test_a_log_that_does_not_answer_at_the_start_ends_the_worker() -> None:
    """A wrong address is an error at once; an outage later is waited for."""
    chosen = settings_for()
    with opened(chosen) as log, pytest.raises(Unreachable):
        Run(FaultyLog(log, {("join", 0): "unreachable"}), chosen)


def test_a_log_that_is_away_too_long_ends_the_worker(
    quiet: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten minutes it gives up waiting; it was live, but not ready, in the meantime."""
    monkeypatch.setattr(loop, "AWAY_REST_S", 1.0)
    chosen = settings_for()
    with opened(chosen) as log:
        log.append(stream(20))
        faults = {("poll", 1): "unreachable", **{("join", n): "unreachable" for n in range(1, 2000)}}
        with pytest.raises(Unreachable):
            Run(FaultyLog(log, faults), chosen)
    assert [each["event"] for each in quiet].count("log_unreachable") == 1


# --- stopping ---------------------------------------------------------------------------------------------


def test_a_stop_between_steps_drains_and_writes_a_checkpoint(tmp_path: Path) -> None:
    """The open steps are finished, a checkpoint is written, and the next run goes on from there."""
    chosen = settings_for(batch={"max_records": 2}, checkpoint={"url": str(tmp_path)})
    chains: list[WorkerState] = []
    with opened(chosen) as log:
        log.append(stream(60))
        first = Run(log, chosen, stopping=lambda _: len(chains) >= 2, stepped=chains.append)
        assert len(chains) == 2
        assert len(written(tmp_path)) == 1
        assert first.heartbeat.vitals().phase == "draining"
        before = Recount(log, chosen)
        assert len(before.predicted) < 60
        assert before.digest == first.held.state.model.digest()
        Run(log, chosen)
        assert len(Recount(log, chosen).predicted) == 60


def test_a_restart_from_a_checkpoint_equals_a_fold_of_the_log(tmp_path: Path) -> None:
    """Whatever the checkpoint spares is exactly what reading the log from its start gives."""
    chosen = settings_for(learner=EPOCH_OF, batch={"max_records": 7}, checkpoint={"url": str(tmp_path)})
    without = chosen.model_copy(update={"checkpoint": chosen.checkpoint.model_copy(update={"url": ""})})
    with opened(chosen, 2) as log:
        log.append(stream(60, partitions=2))
        Run(log, chosen)
        log.append(stream(30, partitions=2, first=60))
        Run(log, without)  # the checkpoint is older than the log now
        resumed = Run(log, chosen, stopping=lambda idle: True)
        folded = Run(log, without, stopping=lambda idle: True)
    assert resumed.metric("mistakebound_checkpoint_size_bytes") > 0
    assert resumed.held.state.model.digest() == folded.held.state.model.digest()
    assert resumed.held.state.model.version() == folded.held.state.model.version()
    for p, ledger in folded.held.state.ledgers.items():
        other = resumed.held.state.ledgers[p]
        assert list(other.waiting) == list(ledger.waiting)
        assert list(other.parked) == list(ledger.parked)
        assert [(entry.id, entry.label) for entry in other.remembered.values()] == [
            (entry.id, entry.label) for entry in ledger.remembered.values()
        ]
        assert other.tallies == ledger.tallies


# --- backlogs and batches ----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_backlog_gives_the_outcomes_of_a_live_stream() -> None:
    """50,000 examples and labels after an outage: no label is parked, no example evicted."""
    count, delay = 50_000, 1_000
    chosen = settings_for(labels={"max_delay": 1_000_000, "max_waiting": 2_000})
    inputs = [example(n, [n % 7 - 3.0, 1.0], 1_000 + n) for n in range(count)]
    inputs += [label(n, n % 7 > 2, 1_000 + n + delay) for n in range(count)]
    with opened(chosen) as log:
        log.append(inputs)
        run = Run(log, chosen)
        parked = b'"outcome":"parked"'
        assert not any(parked in (record.value or b"") for record in log.read("outcomes", 0, 0))
    counted = run.held.state.ledgers[0].tallies.life
    assert counted.examples["evicted"] == 0
    assert counted.examples["labelled"] == counted.labels["applied"] == count


@pytest.mark.parametrize("size", [3, 500, *long(1, 10, 77, 4_000)])
@pytest.mark.parametrize("kind", ["averaged-perceptron", "perceptron"])
def test_a_complete_stream_gives_one_result_in_any_batches(size: int, kind: str) -> None:
    """Live on sqlite and in replay: the same tallies and digest, whatever the batch size."""
    rules = {"max_delay": 0.02, "parking": 0.01, "max_waiting": 8, "remember": 10}
    chosen = settings_for(learner={"kind": kind}, labels=rules, batch={"max_records": size})
    with opened(chosen) as log:
        log.append(
            sorted(stream(300, delay=10) + stream(40, seed=2), key=lambda each: each.timestamp_ms or 0)
        )
        live = Run(log, chosen).held.state
        records = [record for topic in INPUTS for record in log.read(topic, 0, 0)]
    replayed = replay_records(
        records, chosen.model_copy(update={"batch": chosen.batch.model_copy(update={"max_records": 50})}), 1
    )
    assert live.ledgers[0].tallies == replayed.ledgers[0].tallies
    assert live.model.digest() == replayed.model.digest()
    counted = live.ledgers[0].tallies.life
    assert min(counted.examples["evicted"], counted.labels["expired"], counted.examples["duplicate"]) > 0
