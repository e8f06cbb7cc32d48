"""The worked stories do what they say: each is run in an empty folder, block by block, and prints what is printed."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.commands.support.command_line import ENVIRON, start
from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import PATIENCE_S, alike, output

STORIES = (
    ("stories.md", "Fraud"),
    ("stories.md", "Spam"),
    ("stories.md", "Churn"),
    ("tenants.md", "An example"),
    ("envelopes.md", "Debezium, step by step"),
)
RUN = "mistakebound run\n"
STATUS = "mistakebound status\n"

pytestmark = pytest.mark.long


@pytest.mark.parametrize(("page", "story"), STORIES)
def test_a_story_prints_what_it_says(
    page: str, story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of commands, and below it what these print; `run` goes on beside the rest, until SIGTERM."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_HTTP__ADDRESS", "127.0.0.1:0")
    told = fenced(section(DEPLOY / page, story))
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for (language, block), (below, printed) in zip(told, [*told[1:], ("", "")], strict=True):
            if language != "sh":
                continue
            if block == RUN:
                workers.append(start("run"))
                continue
            wanted = printed if below == "text" else None
            deadline = time.monotonic() + PATIENCE_S
            while not alike(found := output(block), wanted):
                assert block == STATUS, found  # only a status is looked at again, while the worker works
                assert time.monotonic() < deadline, found
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
            _, errors = worker.communicate(timeout=PATIENCE_S)
            assert worker.returncode == 0, errors
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
