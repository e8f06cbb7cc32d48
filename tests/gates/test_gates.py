"""The rules that a machine can check: format, lint, types, layers. Part of the tests, so never forgotten."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATES = {
    "format": ("ruff", "format", "--check", "."),
    "lint": ("ruff", "check", "."),
    "types": ("mypy",),
    "layers": ("lint-imports",),
}


@pytest.mark.parametrize("gate", GATES)
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
