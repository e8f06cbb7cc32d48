"""A static scale fitted on data: for each feature its mean and standard deviation, as `features.scale` takes them.

Over the examples that have the feature: an absent one counts as the mean, for it stays absent when the others
are scaled. A feature that never varies where it is present is left out, and so unscaled: a centre would turn every
category (`colour=red` is 1 or absent) and every token into 0, which is what absent means.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, inf, sqrt

from mistakebound.core.messages.features import BIAS, Features


@dataclass(slots=True)
class _Column:
    """What is known of a feature's values, in a few numbers however many there are."""

    count: int = 0
    least: float = inf
    most: float = -inf
    parts: list[float] = field(default_factory=list)
    """Their sum without rounding (Shewchuk 1997), as `fsum` keeps it."""


def fitted(examples: Iterable[Features]) -> dict[str, tuple[float, float]]:
    """Feature to (centre, width), in order of first appearance; width > 0. BIAS and what never varies are left out.

    Reads the examples twice, and holds none of them.
    """
    columns: dict[str, _Column] = {}
    for x in examples:
        for name, value in x:
            if name != BIAS:
                column = columns.get(name) or columns.setdefault(name, _Column())
                column.count += 1
                column.least, column.most = min(column.least, value), max(column.most, value)
                _add(column.parts, value)
    varying = {name: column for name, column in columns.items() if column.least < column.most}
    centres = {name: fsum(column.parts) / column.count for name, column in varying.items()}
    squares: dict[str, list[float]] = {name: [] for name in varying}
    for x in examples:
        for name, value in x:
            if (parts := squares.get(name)) is not None:
                distance = value - centres[name]
                _add(parts, distance * distance)
    return {name: (centres[name], _width(squares[name], column.count)) for name, column in varying.items()}


def _width(squares: list[float], count: int) -> float:
    return sqrt(fsum(squares) / count) or 1.0


def _add(parts: list[float], value: float) -> None:
    """Add to a sum that is kept as parts which do not overlap."""
    kept = 0
    for part in parts:
        larger, smaller = (part, value) if abs(value) < abs(part) else (value, part)
        value = larger + smaller
        if rest := smaller - (value - larger):
            parts[kept] = rest
            kept += 1
    parts[kept:] = [value]
