"""The help of all verbs: whole sentences in the user's words, in colours where a terminal is to have them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mistakebound.commands.app import app
from tests.commands.support.command_line import ENVIRON, ok, run
from tests.commands.support.terminal import on_terminal


def every_verb() -> list[tuple[str, ...]]:
    """Each path of words that names a verb or a group of them; the root is empty."""
    found: list[tuple[str, ...]] = []

    def walk(command: Any, context: Any, path: tuple[str, ...]) -> None:
        found.append(path)
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            verb = command.get_command(context, name)
            walk(verb, typer.Context(verb, parent=context, info_name=name), (*path, name))

    root = typer.main.get_command(app)
    walk(root, typer.Context(root, info_name="mistakebound"), ())
    return found


VERBS = every_verb()


def test_every_verb_is_walked() -> None:
    """Those of groups, too."""
    assert {(), ("run",), ("topics",), ("topics", "check"), ("checkpoint", "list")} <= set(VERBS)


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help_has_a_short_name_and_cuts_nothing(path: tuple[str, ...]) -> None:
    """`-h` is `--help`; what does not fit on a line goes on below it."""
    text = ok(*path, "-h", log=None).stdout
    assert text == ok(*path, "--help", log=None).stdout
    assert "..." not in text.replace("COMMAND [ARGS]...", "").replace("FILE}...", "").replace(
        "[CHECKPOINT]...", ""
    ).replace("file:///...", "").replace("s3://...", "")


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help_names_no_types_of_the_programming_language(path: tuple[str, ...]) -> None:
    """What may be written stands in angle brackets only as a choice."""
    text = ok(*path, "--help", log=None).stdout
    assert [kind for kind in re.findall(r"<([\w|, \[\]-]+)>", text) if "|" not in kind] == []
    assert not re.search(r"\b(int|str|float|bool|Path|list\[)\b", text)


@pytest.mark.parametrize(
    ("words", "meant"), [("recrod", "record"), ("topics chek", "check"), ("statsu --json", "status")]
)
def test_a_verb_that_is_nearly_right_is_suggested(words: str, meant: str) -> None:
    """On stderr; nothing is run."""
    result = run(*words.split(), log=None)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Did you mean '{meant}'" in result.stderr


# --- colours -------------------------------------------------------------------------------------------


def test_a_terminal_gets_colours_and_a_file_does_not() -> None:
    """Headings and names of the help."""
    painted = on_terminal("--help")
    assert "\x1b[1mOptions\x1b[0m:" in painted
    assert "\x1b[36mrun\x1b[0m" in painted
    assert "\x1b" not in ok("--help", log=None).stdout


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}]
)
def test_colours_can_be_refused(variables: dict[str, str]) -> None:
    """By the variable that all programs know, or by a terminal that has none."""
    assert "\x1b[1m" not in on_terminal("--help", **variables)


def test_colours_can_be_forced_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a build server that shows them: help, verdicts, errors."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1mOptions\x1b[0m:" in CliRunner().invoke(app, ["--help"], color=True).stdout
    ok("topics", "create")
    assert "\x1b[32mok\x1b[0m" in ok("topics", "check", "--set", "labels.max_delay=P1D").stdout
    refused = run("health", "--set", "http.address=", log=None)
    assert refused.stderr.startswith("\x1b[31mhttp.address is empty")


# --- completion ----------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, and `mistakebound` on the path."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mistakebound"

    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mistakebound "$@"\n')
    program.chmod(0o755)
    return tmp_path


def in_bash(home: Path, *lines: str) -> str:
    """What a shell of the user's prints."""
    told = subprocess.run(
        ["bash", "--norc", "-c", "\n".join([*lines, "true"])],
        env={**ENVIRON, "HOME": str(home), "PATH": f"{home / 'bin'}:{ENVIRON['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_completion_installs_from_the_root_and_completes(home: Path) -> None:
    """`mistakebound --install-completion`, in bash; then verbs, verbs of groups and options."""
    assert "completion installed" in in_bash(home, "mistakebound --install-completion")
    assert "mistakebound.sh" in (home / ".bashrc").read_text()

    def completed(*words: str) -> set[str]:
        return set(
            in_bash(
                home,
                f"source {home}/.bash_completions/mistakebound.sh",
                f"COMP_WORDS=({' '.join(words)} ''); COMP_CWORD={len(words) - 1}",
                "_mistakebound_completion mistakebound",
                'echo "${COMPREPLY[@]}"',
            ).split()
        )

    assert completed("mistakebound", "re") == {"replay", "record", "reset"}
    assert completed("mistakebound", "topics", "c") == {"create", "check"}
    assert "--resume-from-outcomes" in completed("mistakebound", "run", "--res")
