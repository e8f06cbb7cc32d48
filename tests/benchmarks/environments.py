"""Environments of contenders whose requirements do not go with ours: made once, pinned, in the user's cache."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

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
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mistakebound"
    digest = hashlib.sha256(" ".join((sys.version, *PINNED[contender])).encode()).hexdigest()[:12]
    folder = cache / f"{contender}-{digest}"
    found = folder / "bin" / "python"
    if not (folder / "whole").exists():
        apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, env=apart)
        subprocess.run([str(found), "-m", "pip", "install", "-q", *PINNED[contender]], check=True, env=apart)
        (folder / "whole").touch()
    return str(found)
