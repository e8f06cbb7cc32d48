"""Streams for the comparison of what to do about drift: made by seed, and real ones that a package ships.

Every example has length 1, so that one declared margin means the same on each.
"""

import csv
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import cos, fsum, pi, sin, sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from typing import NamedTuple

from mistakebound.core.replay.replay import Row
from tests.benchmarks.environments import made_once

EXAMPLES, SEEDS, FEATURES = 5_000, 10, 10
MARGIN = 0.05
"""Of the separators of made streams."""
NOISE = 0.1
"""Share of labels turned round, where there are any."""
FITTED = 1_000
"""First examples that a real stream's scale is taken from."""
MOST = 40_000
PACKAGE = "scikit-multiflow==0.4.1"
"""The last wheel with data in it; nothing of it is installed or run."""

Vector = list[float]


class Stream(NamedTuple):
    """A named stream, made anew for each seed."""

    name: str
    seeds: int
    rows: Callable[[int], list[Row]]


def made() -> list[Stream]:
    """Separable and noisy ones, without a change, with three, and turning slowly all the time."""
    return [
        Stream("separable", SEEDS, lambda seed: _made(seed, _steady, 0.0)),
        Stream("noisy", SEEDS, lambda seed: _made(seed, _steady, NOISE)),
        Stream("3 changes", SEEDS, lambda seed: _made(seed, _abrupt, 0.0)),
        Stream("3 changes, noisy", SEEDS, lambda seed: _made(seed, _abrupt, NOISE)),
        Stream("3 reversals", SEEDS, lambda seed: _made(seed, _reversed, 0.0)),
        Stream("slow", SEEDS, lambda seed: _made(seed, _slow, 0.0)),
        Stream("slow, noisy", SEEDS, lambda seed: _made(seed, _slow, NOISE)),
    ]


def _unit(values: Vector) -> Vector:
    length = sqrt(fsum(value * value for value in values))
    return [value / length for value in values] if length else values


def _direction(seed: int, number: int) -> Vector:
    random = Random(f"{seed} {number}")
    return _unit([random.gauss(0, 1) for _ in range(FEATURES)])


def _steady(seed: int, part: float) -> Vector:
    return _direction(seed, 0)


def _abrupt(seed: int, part: float) -> Vector:
    return _direction(seed, int(4 * part))


def _reversed(seed: int, part: float) -> Vector:
    sign = 1.0 if int(4 * part) % 2 == 0 else -1.0
    return [sign * value for value in _direction(seed, 0)]


def _slow(seed: int, part: float) -> Vector:
    """Half a turn, from one direction to its opposite."""
    one, other = _direction(seed, 0), _direction(seed, 1)
    along = fsum(a * b for a, b in zip(one, other, strict=True))
    across = _unit([b - along * a for a, b in zip(one, other, strict=True)])
    return [cos(pi * part) * a + sin(pi * part) * b for a, b in zip(one, across, strict=True)]


def _made(seed: int, separator: Callable[[int, float], Vector], noise: float) -> list[Row]:
    random, found = Random(f"examples {seed}"), list[Row]()
    while len(found) < EXAMPLES:
        u = separator(seed, len(found) / EXAMPLES)
        x = _unit([random.gauss(0, 1) for _ in range(FEATURES)])
        margin = fsum(a * b for a, b in zip(u, x, strict=True))
        if abs(margin) >= MARGIN:
            label = (margin > 0) is not (random.random() < noise)
            found.append(Row(str(len(found)), {f"x{n}": value for n, value in enumerate(x)}, label))
    return found


# --- real streams -------------------------------------------------------------------------------------


def real() -> list[Stream]:
    """In the order in which they were recorded; the longer ones are cut."""
    folder = made_once("drift-data", PACKAGE.encode(), _download)
    files: Mapping[str, tuple[str, Callable[[str], bool | int]]] = {
        "elec": ("elec", lambda target: target == "1"),
        "weather": ("weather", lambda target: target == "1"),
        "covtype": ("covtype", lambda target: target == "2"),
        "covtype, 7 classes": ("covtype", int),
    }
    return [
        Stream(name, 1, lambda seed, file=file, label=label: _read(folder / f"{file}.csv", label))  # type: ignore[misc]
        for name, (file, label) in files.items()
    ]


def _download(folder: Path) -> None:
    """Only the data out of the wheel."""
    wanted = ["--only-binary=:all:", "--python-version=3.7", "--platform=manylinux1_x86_64", "--no-deps"]
    command = [sys.executable, "-m", "pip", "download", "-q", PACKAGE, *wanted, "--dest", str(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as held:
        for name in ("elec", "weather", "covtype"):
            with held.open(f"skmultiflow/data/datasets/{name}.csv") as file:
                lines = io.TextIOWrapper(file, encoding="utf-8")
                (folder / f"{name}.csv").write_text("".join(islice(lines, MOST + 1)))
    wheel.unlink()


def _read(path: Path, label: Callable[[str], bool | int]) -> list[Row]:
    """Columns scaled as the first rows have them, then each example to length 1."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    values = [[float(cell) for cell in row[:-1]] for row in rows]
    scale = [(fmean(column), pstdev(column) or 1.0) for column in zip(*values[:FITTED], strict=True)]

    def scaled() -> Iterator[Row]:
        for number, (x, row) in enumerate(zip(values, rows, strict=True)):
            unit = _unit([(value - centre) / width for value, (centre, width) in zip(x, scale, strict=True)])
            yield Row(str(number), {f"x{n}": value for n, value in enumerate(unit)}, label(row[-1]))

    return list(scaled())
