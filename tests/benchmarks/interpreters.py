"""The same replay on several interpreters, interpreted and compiled: what installs, what switches the GIL on again, CPU time.

    python -m tests.benchmarks.interpreters [--interpreted] PYTHON [PYTHON ...]

Each PYTHON is a program that makes virtual environments. It gets one with what is locked, as far as that can be installed
there, and this project; the next is measured in turn, round by round. This module needs nothing but the standard library,
so that any of them can run it.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
MINUTES = 60
BUILDS = {"interpreted": "0", "compiled": "1"}
SOURCES = ("pyproject.toml", "hatch_build.py", "README.md", "service")
SAYS = "import sys; print(sys.version.split()[0] + ('t' if not getattr(sys, '_is_gil_enabled', lambda: True)() else ''))"
IMPORTS = "import importlib, sys; importlib.import_module(sys.argv[1])"
GIL = "import sys; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
MODULES = (
    "crc32c", "cramjam", "kafka", "lz4.frame", "msgspec", "numpy", "obstore", "prometheus_client", "pydantic",
    "structlog", "typer", "zstandard", "confluent_kafka",
)  # fmt: skip
REPLAY = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.settings import Settings
from tests.benchmarks.workload import Workload, labelled

settings = Settings.model_validate({{"learner": {{"kind": "perceptron"}}}})
rows = [Row(*each) for each in labelled(Workload(10_000, 10))]
began = time.process_time()
state = replay_rows(iter(rows), settings, 1)
took = time.process_time() - began
print(took / len(rows) * 1e6, sum(each.tallies.life.mistakes for each in state.ledgers.values()))
"""


@dataclass
class Environment:
    """One interpreter with one build of the project."""

    name: str
    python: str
    missing: list[str] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    mistakes: str = ""


def main(arguments: list[str]) -> None:
    """Print the table as Markdown."""
    builds = ["interpreted"] if "--interpreted" in arguments else list(BUILDS)
    pythons = [each for each in arguments if not each.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        homes = {
            (python, build): Path(folder) / str(n)
            for n, (python, build) in enumerate(product(pythons, builds))
        }
        made = [_made(*of, home) for of, home in homes.items()]
        for _ in range(ROUNDS):
            for each in made:
                if not each.missing:
                    took, each.mistakes = _output(each.python, "-c", REPLAY).split()
                    each.microseconds.append(float(took))
        print(
            "| interpreter | CPU a row | spread | not installed or imported; switches the GIL on |\n|---|---|---|---|"
        )
        for each in made:
            spent = each.microseconds
            figures = (
                (f"{median(spent):.1f} µs", f"{min(spent):.1f} to {max(spent):.1f}") if spent else ("", "")
            )
            print(f"| {' | '.join((each.name, *figures, '; '.join([*each.missing, *_gil(each)])))} |")
    assert len({each.mistakes for each in made if each.microseconds}) <= 1, (
        "the same algorithm, the same mistakes"
    )


def _made(python: str, build: str, home: Path) -> Environment:
    """Its environment; names what failed."""
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    own = str(home / "bin" / "python")
    made = Environment(f"{_output(own, '-c', SAYS).strip()}, {build}", own)
    print(f"installing for {made.name}", file=sys.stderr, flush=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in (*project["dependencies"], *project["optional-dependencies"]["confluent"]):
        locked = ("-c", str(ROOT / "requirements.lock"), requirement)
        if (why := _failed([own, "-m", "pip", "install", "-q", *locked])) is not None:
            made.missing.append(f"{requirement.partition('=')[0].partition('>')[0]} ({why})")
    for module in MODULES:
        if not made.missing and (why := _failed([own, "-c", IMPORTS, module])) is not None:
            made.missing.append(f"{module} ({why})")
    if not made.missing:
        # From a copy: while it compiles, a build puts another pyproject.toml in place of this one.
        (home / "source").mkdir()
        for name in SOURCES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, home / "source" / name)
        install = [
            "env",
            f"HATCH_BUILD_HOOKS_ENABLE={BUILDS[build]}",
            own,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
        ]
        why = _failed([*install, str(home / "source")])
        made.missing += [] if why is None else [f"mistakebound ({why})"]
    return made


def _gil(made: Environment) -> list[str]:
    """The modules of a free-threaded interpreter that switch its lock on again when they are imported."""
    if "t," not in made.name:
        return []
    return [
        module
        for module in MODULES
        if _failed([made.python, "-c", IMPORTS, module]) is None
        and _output(made.python, "-c", f"import {module}; {GIL}").strip() == "True"
    ]


def _failed(command: list[str]) -> str | None:
    """The last line that says an error; None where the command succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MINUTES * 60)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.splitlines()
    return lines[-1].strip()[:120]


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
