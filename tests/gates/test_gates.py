"""The rules that a machine can check: format, lint, types, layers. Part of the tests, so never forgotten."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT
from tests.support.tries import long

GATES = {
    "format": ("ruff", "format", "--check", "."),
    "lint": ("ruff", "check", "."),
    "types": ("mypy",),
    "layers": ("lint-imports",),
}


@pytest.mark.parametrize("gate", ["format", "lint", "layers", *long("types")])
def test_a_gate_is_closed_to_what_breaks_its_rules(gate: str) -> None:
    """Each tool, configured in pyproject.toml, finds nothing."""
    program, *arguments = GATES[gate]
    found = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("file", ["README.md", ".ci/run"])
def test_no_test_is_left_out_before_a_change_lands(file: str) -> None:
    """Each run of the tests has the option for those that take their time."""
    runs = re.findall(r"^.*\.venv/bin/pytest .*$", (ROOT / file).read_text(), re.MULTILINE)

    assert runs
    assert [one for one in runs if "pytest --long " not in one and "pytest -q --long " not in one] == []
