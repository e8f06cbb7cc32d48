"""What the page on probabilities prints is what the program prints."""

from pathlib import Path

import pytest

from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import output


@pytest.mark.long
def test_the_worked_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    told = fenced(section(DEPLOY / "probabilities.md", "Try it"))
    assert [language for language, _ in told] == ["sh", "text"] * 2
    for (_, block), (_, wanted) in zip(told[0::2], told[1::2], strict=True):
        assert output(block) == wanted
