"""A static scale fitted on data: for each feature its mean and standard deviation, as `features.scale` takes them.

Over the examples that have the feature: an absent one counts as the mean, for it stays absent when the others
are scaled. A feature that never varies gets width 1, so that it becomes 0 wherever it is as it was.
"""

from collections.abc import Iterable
from math import fsum, sqrt

from mistakebound.core.messages.features import BIAS, Features


def fitted(examples: Iterable[Features]) -> dict[str, tuple[float, float]]:
    """Feature to (centre, width), in order of first appearance; width > 0. BIAS is left out."""
    values: dict[str, list[float]] = {}
    for x in examples:
        for name, value in x:
            if name != BIAS:
                values.setdefault(name, []).append(value)
    return {name: _centre_and_width(column) for name, column in values.items()}


def _centre_and_width(column: list[float]) -> tuple[float, float]:
    if min(column) == max(column):  # said first: a rounded mean would leave a width of rounding errors
        return column[0], 1.0
    centre = fsum(column) / len(column)
    width = sqrt(fsum((value - centre) * (value - centre) for value in column) / len(column))
    return centre, width or 1.0
