"""What contenders run in: environments whose requirements do not go with ours, pinned, and ours, compiled. Made once, in
the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
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
    "vowpal": ("vowpalwabbit==9.11.9",),
}


def python(contender: str) -> str:
    """The interpreter of a contender's environment; ours where it needs no other."""
    if contender not in PINNED:
        return sys.executable
    folder = _kept(contender, " ".join(PINNED[contender]).encode())
    found = folder / "bin" / "python"
    if not (folder / "whole").exists():
        apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, env=apart)
        subprocess.run([str(found), "-m", "pip", "install", "-q", *PINNED[contender]], check=True, env=apart)
        (folder / "whole").touch()
    return str(found)


def compiled_checkout() -> Path:
    """A checkout of these sources with compiled modules, made once."""
    sources = (compiled.ROOT / "pyproject.toml", *sorted((compiled.ROOT / "service").rglob("*.py")))
    programs = sorted((compiled.ROOT / "tests" / "benchmarks").rglob("*.py"))
    folder = _kept("compiled", b"".join(path.read_bytes() for path in (*sources, *programs)))
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        compiled.checkout(folder)
        (folder / "whole").touch()
    return folder


def _kept(name: str, content: bytes) -> Path:
    """The folder in the user's cache for what is made of this content."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mistakebound"
    digest = hashlib.sha256(sys.version.encode() + content).hexdigest()[:12]
    return cache / f"{name}-{digest}"
