"""What contenders run in: pinned environments, since their requirements conflict with ours; and ours, compiled.

Made once, in the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import compiled

PINNED = {
    "quix": ("quixstreams==3.28.1", "confluent-kafka==2.12.2", "river==0.26.1"),
    "faust_river": (
        "faust-streaming==0.15.3",
        "aiokafka==0.14.0",
        "river==0.26.1",
        "python-dateutil==2.9.0.post0",
    ),
    "bytewax_river": ("bytewax==0.21.1", "confluent-kafka==2.12.2", "river==0.26.1"),
    "vowpal": ("vowpalwabbit==9.11.9",),
}


def python(contender: str) -> str:
    """The interpreter of a contender's environment; ours where it needs no other."""
    if contender not in PINNED:
        return sys.executable

    def install(folder: Path) -> None:
        apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, env=apart)
        program = str(folder / "bin" / "python")
        subprocess.run([program, "-m", "pip", "install", "-q", *PINNED[contender]], check=True, env=apart)

    return str(made_once(contender, " ".join(PINNED[contender]).encode(), install) / "bin" / "python")


def compiled_checkout() -> Path:
    """A checkout of these sources with compiled modules, made once."""
    sources = (compiled.ROOT / "pyproject.toml", *sorted((compiled.ROOT / "service").rglob("*.py")))
    programs = sorted((compiled.ROOT / "tests" / "benchmarks").rglob("*.py"))
    content = b"".join(path.read_bytes() for path in (*sources, *programs))
    return made_once("compiled", content, compiled.checkout)


def made_once(name: str, content: bytes, make: Callable[[Path], None]) -> Path:
    """The folder in the user's cache for what is made of this content; one that was left unfinished is made anew."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mistakebound"
    digest = hashlib.sha256(sys.version.encode() + content).hexdigest()[:12]
    folder = cache / f"{name}-{digest}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make(folder)
        (folder / "whole").touch()
    return folder
