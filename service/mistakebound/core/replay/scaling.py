"""A static scale fitted on data: for each feature its mean and standard deviation, as `features.scale` takes them.

Over the examples that have the feature: an absent one counts as the mean, for it stays absent when the others
are scaled. A feature that never varies where it is present is left out, and so unscaled: a centre would turn every
category (`colour=red` is 1 or absent) and every token into 0, which is what absent means.
"""

from collections.abc import Iterable
from math import fsum, sqrt

from mistakebound.core.messages.features import BIAS, Features


def fitted(examples: Iterable[Features]) -> dict[str, tuple[float, float]]:
    """Feature to (centre, width), in order of first appearance; width > 0. BIAS and what never varies are left out."""
    values: dict[str, list[float]] = {}
    for x in examples:
        for name, value in x:
            if name != BIAS:
                values.setdefault(name, []).append(value)
    return {name: _centre_and_width(column) for name, column in values.items() if min(column) < max(column)}


def _centre_and_width(column: list[float]) -> tuple[float, float]:
    centre = fsum(column) / len(column)
    width = sqrt(fsum((value - centre) * (value - centre) for value in column) / len(column))
    return centre, width or 1.0
