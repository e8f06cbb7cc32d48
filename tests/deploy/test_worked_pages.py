"""The worked examples of pages on what the log tells print what they say."""

from pathlib import Path

import pytest

from tests.commands.support.command_line import ENVIRON
from tests.deploy.support.pages import DEPLOY, fenced, text_of
from tests.deploy.support.worked import output
from tests.support.tries import long

PAGES = (
    "evaluation.md",
    "costs.md",
    "learners.md",
    *long("delay.md", "drift.md", "probabilities.md", "labels-on-request.md"),
)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_prints_what_stands_below_it(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, in one empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_HTTP__ADDRESS", "127.0.0.1:0")
    told = fenced(text_of(DEPLOY / page))
    assert "sh" in [language for language, _ in told]
    for (language, block), (below, printed) in zip(told, [*told[1:], ("", "")], strict=True):
        if language == "sh":
            found = output(block)
            assert found == printed or below != "text" or not found, block
