"""`run`: what an operator reads in its log, from the first line to the last."""

import json
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.commands.support.command_line import LOG, ok, start

FLAGS = ("--set", "labels.max_delay=P1D", "--set", "http.address=127.0.0.1:0", "--set", "checkpoint.url=")
EXAMPLES = b"".join(b'{"id":%d,"features":{"x":%d}}\n' % (n, n % 3) for n in range(50))
PATIENCE_S = 60.0


class Running:
    """A worker in a process of its own; its log is read line by line."""

    def __init__(self, *more: str) -> None:
        ok("topics", "create")
        self.lines: list[Any] = []
        self.process = start("run", *FLAGS, *more, "--log", LOG)

    def until(self, event: str, count: int = 1) -> None:
        """Read on until so many lines of this event have come."""
        assert self.process.stderr is not None
        while sum(line["event"] == event for line in self.lines) < count:
            line = self.process.stderr.readline()
            assert line, [*self.lines]
            self.lines.append(json.loads(line))

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self, number: int) -> int:
        """End it by a signal; all that is left is read."""
        self.process.send_signal(number)
        _, left = self.process.communicate(timeout=PATIENCE_S)
        self.lines += [json.loads(line) for line in left.splitlines()]
        return self.process.returncode

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]

    def line(self, event: str) -> Any:
        return next(line for line in self.lines if line["event"] == event)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_every_line_is_json_and_each_stage_has_one(number: int) -> None:
    """From start to stopped, and why."""
    with Running() as worker:
        worker.until("assigned")
        assert worker.stop(number) == 0
        assert worker.events() == [
            "start", "serving", "restoring", "ready", "assigned", "not_ready", "stopped",
        ]  # fmt: skip
        begun = worker.line("start")
        assert (begun["client"], begun["prefix"], begun["epoch"], begun["partitions"]) == ("sqlite", "", 0, 1)
        assert begun["topics"]["dead-letters"] == "dead-letters"
        assert begun["version"]
        assert worker.line("assigned")["epoch"] == 1
        assert worker.line("stopped")["reason"] == signal.Signals(number).name


def test_a_worker_that_is_refused_says_why_in_its_last_line_of_the_log() -> None:
    """With the exit code; a message for people follows."""
    ok("topics", "create")
    with Running() as worker:
        worker.until("assigned")
        worker.stop(signal.SIGTERM)
    with start("run", *FLAGS, "--set", "learner.kind=averaged-perceptron", "--log", LOG) as process:
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    lines = said.decode().splitlines()
    stopped = json.loads(next(line for line in lines if '"stopped"' in line))
    assert (process.returncode, stopped["exit_code"], stopped["level"]) == (5, 5, "error")
    assert "learner.kind is 'averaged-perceptron'" in stopped["reason"]
    assert lines[-1].startswith("Set them back;")


def test_signals_change_what_is_logged_without_a_restart() -> None:
    """SIGUSR1: each step, too; SIGUSR2: as at the start. The worker goes on."""
    with Running() as worker:
        worker.until("assigned")
        ok("send", "examples", "-", stdin=EXAMPLES)
        worker.process.send_signal(signal.SIGUSR1)
        worker.until("log_level")
        assert worker.lines[-1]["level_now"] == "debug"
        ok("send", "examples", "-", stdin=EXAMPLES.replace(b'"id":', b'"id":1'))
        worker.until("step")
        assert worker.line("step")["examples"] > 0
        worker.process.send_signal(signal.SIGUSR2)
        worker.until("log_level", count=2)
        assert worker.lines[-1]["level_now"] == "info"
        before = worker.events().count("step")
        ok("send", "examples", "-", stdin=EXAMPLES.replace(b'"id":', b'"id":2'))
        assert until(lambda: json.loads(ok("status", "--json").stdout)["examples"] == 150)
        assert worker.stop(signal.SIGTERM) == 0
        assert worker.events().count("step") == before


def test_a_signal_for_the_level_does_not_end_a_drain() -> None:
    """Two of them are not two signals to stop."""
    with Running() as worker:
        worker.until("assigned")
        worker.process.send_signal(signal.SIGSTOP)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT):
            worker.process.send_signal(number)
        assert worker.stop(signal.SIGUSR1) == 0


def test_the_first_line_of_a_console_log_is_for_people() -> None:
    """By --log-format console."""
    ok("topics", "create")
    process = start("run", *FLAGS, "--log-format", "console", "--log", LOG)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr as said:
        assert b"[info     ] start " in said.readline()
        process.terminate()
        said.read()
    assert process.wait(timeout=PATIENCE_S) == 0


def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
