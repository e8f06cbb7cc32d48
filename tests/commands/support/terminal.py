"""Runs the command line on a terminal of its own."""

import os
import pty
import subprocess
import sys

from tests.commands.support.command_line import ENVIRON


def on_terminal(*arguments: str, **variables: str) -> str:
    """All that the verb writes to the terminal; it must be exit code 0."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mistakebound", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**ENVIRON, "TERM": "xterm", **variables},
    )
    os.close(follower)
    said = b""
    try:
        while piece := os.read(leader, 65_536):
            said += piece
    except OSError:  # Linux says so where the other end is closed
        pass
    finally:
        os.close(leader)
    assert process.wait(timeout=60) == 0, said
    return said.decode()
