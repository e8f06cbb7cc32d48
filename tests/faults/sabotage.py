"""Would the fault suite notice? Remove one guard from a copy of the service, and run the test that must fail.

    python -m tests.faults.sabotage [NAME ...] [--seed N] [--sure]

Each guard is one replacement in a copy of the source, in a temporary folder; then one test runs there, its
child processes included. A guard whose absence goes unnoticed is printed as NOT noticed and the exit code is
1. `--sure` first runs every test on an unbroken copy, where it must pass.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("service", "tests", "pyproject.toml")
RUN_S = 600
LINE = 200
FAILED = 1
"""Pytest's exit code when tests ran and one failed; others tell of a broken run."""


class Guard(NamedTuple):
    """Replace `old` by `new` in the code of `file`, once; then `test` (below tests/) must fail."""

    file: str
    old: str
    new: str
    test: str


KILLED = "faults/test_killed_fleet.py"

GUARDS: Mapping[str, Guard] = {
    "B1 isolation": Guard(
        "service/log/kafka/connect.py",
        '"isolation_level": "read_committed"',
        '"isolation_level": "read_uncommitted"',
        KILLED,
    ),
}
"""Name (the bar's test first) -> what is taken away, and who must notice."""


def main() -> int:
    """Take away the guards asked for, one after the other; 1 where that went unnoticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="guards, or beginnings of their names (B2)")
    parser.add_argument("--seed", help="repeat the random choices of a run")
    parser.add_argument("--sure", action="store_true", help="first see that the tests pass unbroken")
    asked = parser.parse_args()
    chosen = [name for name in GUARDS if not asked.names or name.startswith(tuple(asked.names))]
    if not chosen:
        parser.error(f"no guard of this name; there are: {', '.join(GUARDS)}")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_to(copy)
        for test in dict.fromkeys(GUARDS[name].test for name in chosen) if asked.sure else ():
            code, said, seconds = _run(copy, test, asked.seed)
            bad += code != 0
            print(f"{'unbroken':32} {'passed' if code == 0 else f'FAILED: {said}'} ({seconds:.0f} s) {test}")
        for name in chosen:
            result, noticed = _without(copy, GUARDS[name], asked.seed)
            bad += not noticed
            print(f"{name:32} {result}", flush=True)
    return 1 if bad else 0


def _copy_to(folder: Path) -> None:
    for part in COPIED:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)


def _without(copy: Path, guard: Guard, seed: str | None) -> tuple[str, bool]:
    target = copy / guard.file
    text = target.read_text()
    code_begins = text.index('"""', 3)  # behind the module's docstring, which may say the same
    if text[code_begins:].count(guard.old) != 1:
        return f"NOT tried: {guard.file} must hold once {guard.old!r}", False
    target.write_text(text[:code_begins] + text[code_begins:].replace(guard.old, guard.new))
    try:
        code, said, seconds = _run(copy, guard.test, seed)
    finally:
        target.write_text(text)
    if code == FAILED:
        return f"noticed ({seconds:.0f} s): {said}", True
    return f"NOT noticed ({seconds:.0f} s, pytest ended with {code}): {said}", False


def _run(copy: Path, test: str, seed: str | None) -> tuple[int, str, float]:
    """Pytest's exit code, what it said of the failure, and how long it took in s."""
    environ = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environ |= {"MISTAKEBOUND_SEED": seed} if seed else {}
    began = time.monotonic()
    arguments = ("-x", "-q", "-p", "no:cacheprovider", "--tb=short", f"tests/{test}")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=copy,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=RUN_S,
        check=False,
    )
    said = re.findall(r"^E +(.*)$", run.stdout, re.MULTILINE) or run.stdout.strip().splitlines()[-1:]
    return run.returncode, (said or run.stderr.splitlines()[-1:])[0][:LINE], time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
