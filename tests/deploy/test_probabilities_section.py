"""What the section on probabilities prints is what the program prints."""

from pathlib import Path

import pytest

from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import output

LEFT_OUT = "..."


@pytest.mark.long
def test_the_worked_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines shown, in their order; dots stand for others."""
    monkeypatch.chdir(tmp_path)
    (_, block), (_, shown) = fenced(section(DEPLOY / "learners.md", "Probabilities"))
    found = output(block).splitlines()
    wanted = [line for line in shown.splitlines() if line != LEFT_OUT]
    assert [line for line in found if line in wanted] == wanted
