"""The worked example of the page on comparing prints what it says."""

import re
import signal
from pathlib import Path

import pytest

from tests.commands.support.command_line import ENVIRON, start
from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import PATIENCE_S, output
from tests.faults.support.children import until

PAGE = DEPLOY / "compare.md"
RUN = "mistakebound run --config challenger.toml"


def without_times(text: str) -> str:
    """A label's time is when it was sent."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "at some time", text)


@pytest.mark.long
def test_the_challenger_is_compared_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block in an empty folder; the challenger runs until both have judged all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_HTTP__ADDRESS", "127.0.0.1:0")
    begin, (_, made), (_, wanted_made), (_, runs), (_, compares), (_, wanted) = fenced(
        section(PAGE, "A challenger beside the champion")
    )
    output(begin[1])
    assert output(made) == wanted_made
    assert runs == f"{RUN}\n"
    worker = start(*RUN.split()[1:])
    try:
        until(lambda: without_times(compared(compares)) == without_times(wanted), PATIENCE_S, wanted)
        worker.send_signal(signal.SIGTERM)
        _, errors = worker.communicate(timeout=PATIENCE_S)
    finally:
        worker.kill()
        worker.communicate()
    assert worker.returncode == 0, errors


def compared(compares: str) -> str:
    """What it prints, or nothing while the challenger has judged nothing."""
    return output(f"{compares.strip()} || true")
