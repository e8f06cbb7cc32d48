"""Other learners on the same labelled rows, parsing included: what `offline` puts beside a replay."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy
from sklearn.linear_model import Perceptron

from tests.benchmarks.environments import python
from tests.support.project import ROOT

PATIENCE_S = 300
CLASSES = numpy.array([False, True])


def scikit_learn(lines: Sequence[bytes]) -> int:
    """Mistakes of `partial_fit` row by row. Values in a fixed order, its fastest: it hashes far slower."""
    model, mistakes, names = Perceptron(), 0, list(msgspec.json.decode(lines[0])["features"])
    for number, line in enumerate(lines):
        row = msgspec.json.decode(line)
        x = numpy.array([[row["features"][name] for name in names]])
        predicted = bool(model.predict(x)[0]) if number else False
        mistakes += predicted != row["label"]
        model.partial_fit(x, [row["label"]], CLASSES)
    return mistakes


def vowpal_wabbit(lines: Sequence[bytes]) -> dict[str, tuple[float, int]]:
    """CPU seconds and mistakes of Vowpal Wabbit by how it reads: `native`, the file; `rows`, from Python.

    The rows are the same, under the keys that its JSON asks for.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        with path.open("wb") as file:
            for line in lines:
                row = msgspec.json.decode(line)
                theirs = {"_label": 1 if row["label"] else -1, "f": row["features"]}
                file.write(msgspec.json.encode(theirs) + b"\n")
        command = [python("vowpal"), "-m", "tests.benchmarks.contenders.vowpal", str(path)]
        done = subprocess.run(
            command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
        )
    if done.returncode != 0:
        raise RuntimeError(f"Vowpal Wabbit ended with {done.returncode}:\n{done.stderr[-4_000:]}")
    return {how: (spent, mistakes) for how, (spent, mistakes) in json.loads(done.stdout).items()}
