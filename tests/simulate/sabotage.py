"""Would the simulation notice? Remove one guard from a copy of the service, and run seeds until one fails.

The guards are those of the fault suite's table. Those of a Kafka client are stood for by a trap of the model's client;
those that the model has no part in are named in the table with the reason.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults.sabotage import GUARDS, Guard, code_of, copy_to
from tests.support.project import python_path

RUN_S = 3_000
LINE = 160


def sabotage(names: list[str], seeds: int, processes: int, faults: Sequence[str]) -> int:
    """Print for each guard how many seeds it took; 1 where a guard went unnoticed."""
    chosen = [name for name in GUARDS if not names or {name, name.partition(" ")[0]} & set(names)]
    if not chosen:
        print(f"no guard of this name; there are: {', '.join(GUARDS)}")
        return 2
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_to(copy)
        for name in chosen:
            guard = GUARDS[name]
            if guard.beyond:
                print(f"{name:68} not simulated: {guard.beyond}", flush=True)
                continue
            took, said = _without(
                copy, guard, [f"--seeds={seeds}", f"--processes={processes}", "--only", *faults]
            )
            unnoticed += took is None
            result = f"NOT noticed in {seeds} seeds" if took is None else f"{took} seeds"
            print(f"{name:68} {result}: {said[:LINE]}", flush=True)
    return 1 if unnoticed else 0


def _without(copy: Path, guard: Guard, options: Sequence[str]) -> tuple[int | None, str]:
    """How many seeds it took, and what the last one said."""
    if guard.trap:
        return _run(copy, *options, "--trap", guard.trap)
    target = copy / guard.file
    text = target.read_text()
    head, code = code_of(text)
    assert code.count(guard.old) == 1, f"{guard.file} must hold once {guard.old!r}"
    target.write_text(head + code.replace(guard.old, guard.new))
    try:
        return _run(copy, *options)
    finally:
        target.write_text(text)


def _run(copy: Path, *more: str) -> tuple[int | None, str]:
    options = ["--briefly", "--most", "1", *more]
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulate", *options],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": python_path(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    last = re.search(r"^(\d+) seeds, (\d+) failed.*\Z", run.stdout.strip(), re.MULTILINE)
    assert last is not None, run.stdout + run.stderr
    said = [line for line in run.stdout.splitlines() if line.startswith("seed ")]
    return (int(last[1]) if int(last[2]) else None), (said[-1] if said else last[0])
