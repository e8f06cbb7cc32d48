"""Worked examples: blocks of commands in a page, run by a shell, and what stands below them as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.commands.support.command_line import ENVIRON

PATIENCE_S = 180.0


def output(commands: str) -> str:
    """What the shell prints for a block, which must succeed."""
    path = os.pathsep.join((str(Path(sys.executable).parent), ENVIRON["PATH"]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env={**ENVIRON, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def alike(found: str, wanted: str | None) -> bool:
    """But for the time of day, which is when the record was made."""
    return wanted is None or now_is_any_time(found) == now_is_any_time(wanted)


def now_is_any_time(text: str) -> str:
    return re.sub(r'"at":\d+', '"at":0', text)
