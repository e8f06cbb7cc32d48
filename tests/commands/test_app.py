"""The frame of all verbs: help, version, errors, exit codes, pipes."""

import subprocess
import sys

import pytest

from mistakebound.commands.app import VERBS
from tests.commands.support.command_line import ENVIRON, LOG, ok, run, start


def test_alone_it_prints_the_help() -> None:
    """Nobody has to know --help; the exit codes are in it."""
    result = ok(log=None)
    assert "Commands:" in result.stdout
    assert "Exit codes: 0 done; 1 a bug" in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    """With the options that all share, or its own verbs; some read no settings."""
    text = ok(verb, "--help", log=None).stdout
    assert "--config" in text or "Commands:" in text or verb in ("learners", "teach")


def test_help_imports_nothing_slow() -> None:
    """It answers at once."""
    code = (
        "import sys; from typer.testing import CliRunner; from mistakebound.commands.app import app; "
        "CliRunner().invoke(app, ['--help']); "
        "slow = {'pydantic', 'numpy', 'kafka', 'msgspec', 'structlog', 'rich', 'obstore', 'prometheus_client'}; "
        "print(sorted(slow & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=ENVIRON, timeout=60
    )
    assert result.stdout.strip() == b"[]"


def test_the_version_is_printed() -> None:
    """For bug reports."""
    assert ok("--version", log=None).stdout.startswith("mistakebound ")


def test_an_unknown_verb_or_option_is_a_usage_error() -> None:
    """Exit code 2, on stderr."""
    for arguments in (["recrod"], ["record", "--frm"], ["tail"]):
        result = run(*arguments, log=None)
        assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.long
def test_a_bug_shows_its_traceback_and_exits_1() -> None:
    """A bug report needs it."""
    code = (
        "import mistakebound.commands.health as h; h.read_settings = lambda *a: 1 / 0\n"
        "import sys; sys.argv = ['mistakebound', 'health']\n"
        "from mistakebound.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env=ENVIRON, timeout=60
    )
    assert result.returncode == 1
    assert b"ZeroDivisionError" in result.stderr


def test_a_command_without_a_log_says_how_to_name_one() -> None:
    """Exit code 2; never a silent default."""
    result = run("topics", "check", log=None)
    assert result.exit_code == 2
    assert "log.url: missing" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`mistakebound record - | head -1`."""
    ok("topics", "create")
    ok(
        "send",
        "examples",
        "-",
        stdin=b"".join(b'{"id":%d,"pad":"%s"}\n' % (n, b"x" * 900) for n in range(500)),
    )
    process = start("record", "-", "--log", LOG)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert b"Error" not in process.stderr.read()
    process.stderr.close()
