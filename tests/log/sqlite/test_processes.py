"""The sqlite log between processes: kills at any moment, two writers, a takeover."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mistakebound.core.records import Outgoing
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import LogSettings, Settings
from tests.log.support.worker import Worker, example, values
from tests.support.project import ROOT

COMMITS_FOR_EVER = """
import sys
from mistakebound.core.records import Outgoing, Position, Transaction
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings

log = open_log(Settings(log=LogSettings(url=sys.argv[1])))
session = log.join("child")
generation = session.poll(0).generation
done = (session.committed([0])[0] or Position(0, 0)).examples
while True:
    done += 1
    outputs = [Outgoing(t, p, None, b"%d" % done) for t in ("predictions", "outcomes") for p in (0, 1)] * 100
    session.commit(Transaction(outputs, {0: Position(done, 0, str(done))}), generation)
    print(done, flush=True)
"""

DIES_IN_MID_TRANSACTION = """
import os, signal, sys
from mistakebound.core.records import Outgoing, Position, Transaction
from mistakebound.log import open_log
from mistakebound.log.sqlite import group
from mistakebound.settings import LogSettings, Settings

log = open_log(Settings(log=LogSettings(url=sys.argv[1])))
session = log.join("child")
generation = session.poll(0).generation
group.store = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
outputs = [Outgoing("predictions", 0, None, bytes(100_000))] * 200
session.commit(Transaction(outputs, {0: Position(1, 0)}), generation)
"""


@contextlib.contextmanager
def child(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process running `code` on the log at `path`; it does not outlive the block."""
    command = [sys.executable, "-c", code, f"sqlite:{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_kill_between_outputs_and_positions_leaves_nothing(log: Log, path: Path) -> None:
    """With 20 MB of a transaction written and the process gone, the log is as it was, and goes on."""
    with child(DIES_IN_MID_TRANSACTION, path) as process:
        assert process.wait(60) == -signal.SIGKILL

    assert values(log, "predictions", 0) == []
    assert log.group_positions() == {0: None, 1: None}
    worker = Worker(log).start()
    worker.commit([Outgoing("predictions", 0, None, b"next")])
    assert [record.offset for record in log.read("predictions", 0, 0)] == [0]


@pytest.mark.long
@pytest.mark.faults
def test_kills_at_any_moment_leave_whole_transactions(log: Log, path: Path) -> None:
    """After each kill positions and outputs agree, and what the child reported as committed is there."""
    for kill_after in (1, 3, 10, 30, 100):
        with child(COMMITS_FOR_EVER, path) as process:
            assert process.stdout
            told = [int(process.stdout.readline()) for _ in range(kill_after)][-1]
        position = log.group_positions()[0]
        assert position
        assert position.examples >= told
        assert position.metadata == str(position.examples)
        expected = [b"%d" % n for n in range(1, position.examples + 1) for _ in range(100)]
        for topic in ("predictions", "outcomes"):
            assert [values(log, topic, partition) for partition in (0, 1)] == [expected, expected]


@pytest.mark.long
def test_a_worker_in_another_process_is_fenced(log: Log, path: Path) -> None:
    """A session that joins here, under any slot, ends the child's; what it has written stays."""
    with child(COMMITS_FOR_EVER, path) as process:
        assert process.stdout
        process.stdout.readline()
        session = log.join("another slot")
        assert process.wait(60) == 1

    committed = session.committed([0])[0]
    assert committed
    assert values(log, "predictions", 0)[-1] == b"%d" % committed.examples


@pytest.mark.long
def test_two_processes_may_write_at_the_same_time(log: Log, path: Path) -> None:
    """While the child commits, appends from several threads here are neither lost nor torn."""
    with child(COMMITS_FOR_EVER, path) as process:
        assert process.stdout
        process.stdout.readline()

        def append(name: int) -> None:
            for n in range(50):
                log.append([example(name % 2, b"%d-%d" % (name, n)), Outgoing("labels", 0, None, b"l")])

        threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for name in range(4):
        own = [
            value for value in values(log, "examples", name % 2) if (value or b"").startswith(b"%d-" % name)
        ]
        assert own == [b"%d-%d" % (name, n) for n in range(50)]
    assert len(values(log, "labels", 0)) == 200


@pytest.mark.long
def test_processes_may_create_the_log_at_the_same_time(path: Path) -> None:
    """Exactly one makes each topic; nobody fails."""
    create = (
        "import sys; from mistakebound.log import open_log; from mistakebound.settings import *\n"
        "log = open_log(Settings(log=LogSettings(url=sys.argv[1])))\n"
        "print(len(log.create_topics(2, {})))"
    )
    with contextlib.ExitStack() as running:
        processes = [running.enter_context(child(create, path)) for _ in range(4)]
        made = [process.communicate(timeout=60)[0].strip() for process in processes]

    assert sorted(made) == ["0", "0", "0", "6"]


def test_a_log_is_made_when_another_process_that_makes_the_same_file_is_done(path: Path) -> None:
    """sqlite refuses the change to WAL mode at once then, whatever its time-out."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    soon = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    soon.start()

    made = open_log(Settings(log=LogSettings(url=f"sqlite:{path}"))).create_topics(2, {})

    soon.join()
    other.close()
    assert len(made) == 6
