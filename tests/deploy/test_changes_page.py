"""The worked example of the page on proved changes prints what it says."""

import itertools
from pathlib import Path

import pytest

from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import output


@pytest.mark.long
def test_the_demo_proves_one_change_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    told = fenced(section(DEPLOY / "changes.md", "Try it"))
    pairs = [(block, below) for (language, block), (_, below) in itertools.pairwise(told) if language == "sh"]
    assert len(pairs) == 2
    for commands, printed in pairs:
        assert output(commands) == printed
