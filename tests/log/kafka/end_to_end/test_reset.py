"""The next epoch on a real broker: begun by the group's only member, it shuts out whoever was paused."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mistakebound.core.messages.schema import Base, Epoch, read_outcomes, read_update
from mistakebound.core.records import Outgoing, Position, Transaction
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, Refused, StaleGeneration
from mistakebound.settings import Settings
from mistakebound.worker.epochs.reset import execute, planned
from tests.commands.support.command_line import start
from tests.log.kafka.end_to_end.conftest import inputs
from tests.log.kafka.end_to_end.test_sharing import owned, until, working
from tests.worker.support.working import Run, altered, only_takes_over, opened

PATIENCE_S = 60.0
WINNOW = {"kind": "winnow"}


def reset(log: Log, settings: Settings, wait_s: float = PATIENCE_S) -> None:
    plan = planned(log, settings, None)
    assert plan is not None
    execute(log, settings, plan, wait_s)


def written(log: Log) -> dict[Any, list[bytes | None]]:
    return {
        (topic, p): [record.value for record in log.read(topic, p, 0)]
        for topic in ("predictions", "outcomes", "updates")
        for p in range(log.partitions)
    }


def epochs(log: Log, partition: int) -> list[int]:
    """Numbers of all records of `updates`, in order."""
    return [read_update(record).epoch for record in log.read("updates", partition, 0)]


def test_a_reset_keeps_the_positions_and_begins_the_epoch_everywhere(settings: Settings) -> None:
    """Afterwards the new settings work and the old are refused; chained with one to an earlier version."""
    other = altered(settings, learner={"kind": "averaged-perceptron"})
    with opened(settings, 2) as log:
        log.append(inputs(100))
        first = Run(log, settings).held.state.model
        positions = log.group_positions()
        plan = planned(log, other, None)
        assert plan is not None
        assert plan.given_up() == {1: first.updates}
        execute(log, other, plan, PATIENCE_S)
        assert log.group_positions() == positions
        assert [epochs(log, p)[-1] for p in range(2)] == [2, 2]
        with pytest.raises(Refused, match=r"learner\.kind is 'perceptron', the epoch has 'averaged"):
            Run(log, settings)
        log.append(inputs(100, first=500))
        held = Run(log, other).held.state
        assert (held.model.epoch, [held.ledgers[p].tallies.epoch.updates for p in range(2)]) == (
            2,
            held.model.updates,
        )
        back = planned(log, settings, Base(1, first.updates))
        assert back is not None
        execute(log, settings, back, PATIENCE_S)
        assert Run(log, settings, stopping=only_takes_over).held.state.model.digest() == first.digest()


@contextmanager
def silent(settings: Settings) -> Iterator[Any]:
    """A member that owns all partitions, and from then on is asked for nothing: it leaves the group unknowing."""
    with open_log(altered(settings, kafka={"max_poll_interval_ms": 6_000})) as log:
        session = log.join("silent")
        deadline = time.monotonic() + PATIENCE_S
        while len((polled := session.poll(0.5)).partitions) < log.partitions:
            assert time.monotonic() < deadline
        yield session, polled.generation
        session.close(5)


def test_a_worker_that_was_paused_cannot_commit_after_a_reset(settings: Settings) -> None:
    """Its generation has passed, though it does not know; nothing of its transaction is ever seen."""
    with opened(settings, 2) as log:
        log.append(inputs(50))
        Run(log, settings)
        positions = {p: each for p, each in log.group_positions().items() if each is not None}
        with silent(settings) as (session, generation):
            session.committed(range(2))
            reset(log, altered(settings, learner=WINNOW))
            before = written(log)
            late = [Outgoing("outcomes", p, None, b"late") for p in range(2)]
            moved = {
                p: Position(each.examples + 1, each.labels, each.metadata) for p, each in positions.items()
            }
            with pytest.raises(StaleGeneration):
                session.commit(Transaction(late, moved), generation)
            assert written(log) == before
            assert log.group_positions() == positions


def test_a_stopped_process_writes_nothing_after_a_reset(settings: Settings) -> None:
    """SIGSTOP in the middle of its work, a reset, SIGCONT: it finds the new epoch, and refuses (exit 5)."""
    other = altered(settings, learner=WINNOW)
    flags = [
        "--log",
        settings.log.url or "",
        f"--set=log.prefix={settings.log.prefix}",
        "--set=labels.max_delay=1000000",
        "--set=learner.kind=perceptron",
        "--set=http.address=",
        "--set=checkpoint.url=",
        "--set=batch.max_records=20",
    ]
    with opened(settings, 2) as log:
        log.append(inputs(2_000))
        worker = start("run", *flags)
        try:
            until(lambda: any(log.high_watermark("outcomes", p) > 2 for p in range(2)), "it works")
            os.kill(worker.pid, signal.SIGSTOP)
            reset(log, other)
            before = written(log)
            consumed = log.group_positions()
            os.kill(worker.pid, signal.SIGCONT)
            said = worker.communicate(timeout=120)[1]
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.communicate()
        assert worker.returncode == 5, said
        assert b"learner.kind is 'perceptron', the epoch has 'winnow'" in said
        assert written(log) == before
        assert log.group_positions() == consumed
        assert any(
            position is None or position.examples < log.high_watermark("examples", p)
            for p, position in consumed.items()
        ), "it was stopped in the middle"
        held = Run(log, other).held.state
        assert held.model.epoch == 2
        for p in range(2):
            assert epochs(log, p) == sorted(epochs(log, p))
            assert isinstance(read_update(next(iter(log.read("updates", p, 0)))), Epoch)
            last = read_outcomes(list(log.read("outcomes", p, 0))[-1])
            assert last.model.epoch == 2


def test_a_reset_is_refused_while_another_worker_runs(settings: Settings) -> None:
    """The running one goes on as before; the refusal says what to do."""
    with opened(settings, 2) as log, working(settings, "one") as worker:
        log.append(inputs(50))
        until(lambda: len(owned(worker)) == 2 and log.group_positions()[0] is not None, "it works")
        with pytest.raises(Refused, match=r"only \d of 2 partitions .*other workers .*stop them first"):
            reset(log, altered(settings, learner=WINNOW), wait_s=8)
        until(lambda: len(owned(worker)) == 2, "it owns all again")
        log.append(inputs(50, first=500))
        until(
            lambda: all(
                position is not None and position.examples >= log.high_watermark("examples", p) - 1
                for p, position in log.group_positions().items()
            ),
            "it goes on",
        )
        assert epochs(log, 0).count(2) == 0


def test_the_command_on_a_broker(settings: Settings) -> None:
    """Plan, then execution, as users call it."""
    flags = ["--log", settings.log.url or "", f"--set=log.prefix={settings.log.prefix}"]
    flags += ["--set=labels.max_delay=1000000", "--set=learner.kind=winnow"]
    with opened(settings, 2) as log:
        log.append(inputs(50))
        updates = Run(log, settings).held.state.model.updates
        for more, count in (("--json", 1), ("--execute", 2)):
            process: subprocess.Popen[bytes] = start("reset", more, *flags)
            out, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
            assert epochs(log, 0)[-1] == count
            if more == "--json":
                assert json.loads(out)["now"]["updates"] == updates
