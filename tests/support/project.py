"""Where the project lies, and what lets a Python process import a copy of it."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "service"


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for `mistakebound` and `tests` of the copy at `root`, before what is installed."""
    return os.pathsep.join((str(root / "service"), str(root)))
