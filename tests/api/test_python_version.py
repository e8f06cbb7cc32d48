"""A Python that is too old is told so in one line."""

import subprocess
import sys

import pytest

from tests.commands.support.command_line import ENVIRON


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 8, 0)])
def test_an_older_python_is_refused_by_its_version(version: tuple[int, ...]) -> None:
    """Exit code 2, before anything is loaded that it could not load."""
    code = f"import sys; sys.version_info = {version}; import runpy; runpy.run_module('mistakebound', run_name='__main__')"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRON, check=False, timeout=60
    )
    number = ".".join(map(str, version))
    assert told.returncode == 2
    assert told.stderr == f"mistakebound needs Python 3.11 or newer, and {sys.executable} is {number}\n"
