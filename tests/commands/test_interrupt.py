"""Ctrl-C: a command ends at once, with 130 and without a word, whatever it waits for."""

import signal
import subprocess
import sys
import time

import pytest

from tests.commands.support.command_line import ENVIRON
from tests.support.tries import long

CLOSED = "kafka://127.0.0.1:1"
"""Nobody listens there: a command tries for ten seconds."""
PATIENCE_S = 8.0

INTERRUPTED_WHILE_IMPORTING = """
import importlib.abc, os, signal, sys

class Interrupts(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv = ["mistakebound", *{arguments!r}]
from mistakebound.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "mistakebound.commands.app", *long("typer.core", "json")])
@pytest.mark.parametrize("arguments", [["--version"], ["status", "--log", CLOSED]])
def test_while_modules_load_it_ends_quietly(module: str, arguments: list[str]) -> None:
    """No import is shown in the middle."""
    code = INTERRUPTED_WHILE_IMPORTING.format(module=module, arguments=arguments)
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=ENVIRON, timeout=60, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (130, b"", b"")


@pytest.mark.parametrize("module", ["mistakebound.config.load", "pydantic", "msgspec", *long("kafka")])
def test_while_a_verb_loads_what_it_needs_it_ends_quietly(module: str) -> None:
    """Within the verb, as before it."""
    code = INTERRUPTED_WHILE_IMPORTING.format(module=module, arguments=["status", "--log", CLOSED])
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=ENVIRON, timeout=60, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (130, b"", b"")


def interrupted(*arguments: str) -> tuple[int, bytes]:
    """The exit code of a verb that waits for a broker, and what it said, after Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mistakebound", *arguments], stderr=subprocess.PIPE, env=ENVIRON
    )
    assert process.stderr is not None
    with process.stderr as said:
        time.sleep(3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        return process.wait(timeout=PATIENCE_S), said.read()


@pytest.mark.parametrize(
    "words",
    ["status", *long("record all.jsonl", "send examples /dev/null", "tail predictions", "audit", "topics check",
     "config check --online --set labels.max_delay=P1D")],
)  # fmt: skip
@pytest.mark.parametrize("client", ["kafka", *long("kafka+confluent")])
def test_while_the_broker_is_away_it_ends_quietly(words: str, client: str) -> None:
    """Long before the command would give up."""
    assert interrupted(*words.split(), "--log", CLOSED.replace("kafka", client)) == (130, b"")


@pytest.mark.parametrize("words", ["run --set labels.max_delay=P1D", *long("demo")])
def test_a_worker_that_has_not_begun_ends_at_once_and_well(words: str) -> None:
    """With 0, as a worker that is told to stop always does: it has nothing to finish."""
    assert interrupted(*words.split(), "--log", CLOSED) == (0, b"")
