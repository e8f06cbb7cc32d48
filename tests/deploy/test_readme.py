"""The README says what is so: short, its commands stand where they are run from, its tables and figures are the program's."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mistakebound.commands.app import VERBS, app
from mistakebound.config.keys import keys, render_toml
from tests.deploy.support.pages import README, blocks, section

MOST_BYTES = 10_240


def test_the_readme_is_short() -> None:
    """Read in five minutes; everything else has a page under `deploy`."""
    assert len(README.read_bytes()) <= MOST_BYTES


def test_the_first_two_blocks_of_commands_are_those_that_are_run_before_a_change_lands() -> None:
    """`.ci/run` takes the demo from the first one and the tests from the second."""
    demo, tests, *_ = blocks(README, "sh")

    assert demo.endswith(".venv/bin/mistakebound demo --once\n")
    assert ".venv/bin/pytest --long " in tests


def test_the_settings_shown_have_the_defaults_shown() -> None:
    """Each key of the short table exists, and its default is the program's where it has one."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| (?:`(.*?)`)?", section(README, "Settings"), re.MULTILINE)

    assert len(rows) == 7
    for name, default in rows:
        assert not default or render_toml(keys()[name].default) == default


def test_every_verb_is_in_the_table_of_commands() -> None:
    """A verb that nobody can read about does not exist."""
    commands = section(README, "Commands")

    assert [verb for verb in VERBS if f"`{verb}" not in commands] == []


def test_the_example_configuration_is_valid(tmp_path: Path) -> None:
    """The TOML block passes `config check`."""
    (source,) = blocks(README, "toml")
    (tmp_path / "mistakebound.toml").write_text(source)

    result = CliRunner().invoke(app, ["config", "check", "--config", str(tmp_path / "mistakebound.toml")])

    assert result.exit_code == 0, result.output


def test_the_demos_summary_is_the_one_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers and the same digest on every machine; the lines of progress depend on its speed."""
    monkeypatch.chdir(tmp_path)
    printed = next(block for block in blocks(README, "text") if "always majority" in block)
    summary = printed[printed.index("learner ") :]

    result = CliRunner().invoke(app, ["demo", "--once", "--set", "http.address=127.0.0.1:0"])

    assert result.exit_code == 0, result.output
    assert result.stdout == summary
