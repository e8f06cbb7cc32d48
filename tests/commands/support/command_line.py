"""Runs the command line as a user would, in the test's own empty folder."""

import os
import subprocess
import sys

from typer.testing import CliRunner, Result

from mistakebound.commands.app import app
from tests.support.project import python_path

LOG = "sqlite:log.db"
ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("MISTAKEBOUND_")},
    "PYTHONPATH": python_path(),
}


def run(*arguments: str, log: str | None = LOG, stdin: bytes = b"") -> Result:
    """The verb's result, whatever it is."""
    extra = [] if log is None else ["--log", log]
    return CliRunner().invoke(app, [*arguments, *extra], input=stdin)


def ok(*arguments: str, log: str | None = LOG, stdin: bytes = b"") -> Result:
    """The verb's result; it must be exit code 0."""
    result = run(*arguments, log=log, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    """The verb in a process of its own, for signals and pipes."""
    command = [sys.executable, "-m", "mistakebound", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON)
