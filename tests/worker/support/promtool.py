"""Prometheus' own linter, for pages of tests."""

import shutil
import subprocess

MISSING = (
    "promtool is not on the PATH; install it (Debian and Ubuntu: apt-get install prometheus; "
    "macOS: brew install prometheus), or leave these tests out with: pytest -m 'not promtool'"
)


def lint(page: bytes) -> str:
    """What `promtool check metrics` says about a page in text format; empty when it is clean."""
    promtool = shutil.which("promtool")
    assert promtool is not None, MISSING
    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode()
    return said or ("" if done.returncode == 0 else f"exit code {done.returncode}")
