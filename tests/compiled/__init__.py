"""The worker with its hot modules compiled by mypyc, as pyproject.toml names them: built, compared, tested.

    python -m tests.compiled FOLDER

copies the project into a new folder and compiles it there. Whatever is then run in that folder, tests, faults and
benchmarks, runs the compiled worker. A C compiler is needed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from tests.support.project import ROOT, SOURCE

BUILD = {"HATCH_BUILD_HOOKS_ENABLE": "1", "HATCH_BUILD_CLEAN_HOOKS_AFTER": "1"}
COPIED = (
    "service",
    "tests",
    "deploy",
    "docker-compose.yml",
    "pyproject.toml",
    "hatch_build.py",
    "requirements.hashes",
    "requirements.lock",
    "README.md",
)
MISSING = (
    "cc is not on the PATH; install a C compiler (Debian and Ubuntu: apt-get install gcc libc6-dev), or leave "
    "these tests out with: pytest -m 'not compiler'"
)


def named() -> list[str]:
    """The modules that pyproject.toml wants compiled, as one imports them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
    left_out = {ROOT / path[1:] for path in hook["exclude"]}
    found = [file for path in hook["include"] for file in sorted(ROOT.glob(path[1:])) if file not in left_out]
    return [".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in found]


def checkout(folder: Path) -> None:
    """Copy the project into a folder that does not exist yet, and put the compiled modules beside their sources."""
    assert shutil.which("cc") is not None, MISSING
    folder.mkdir(parents=True)
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(source, target)
    with tempfile.TemporaryDirectory() as wheels:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, str(folder)],
            check=True,
            env=os.environ | BUILD,
        )
        (wheel,) = Path(wheels).glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(
                folder / "service", [name for name in content.namelist() if name.endswith((".so", ".pyd"))]
            )
