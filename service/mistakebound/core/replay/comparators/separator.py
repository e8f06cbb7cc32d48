"""The best fixed separator in hindsight, through the origin of the features as learned (BIAS counted).

Whether one exists is a linear program: the least total hinge loss, 0 exactly where the data is separable.
Its margin is then a quadratic program, to put the longest distance between the classes (Lawson & Hanson 1974,
least distance programming): min |w| with y w.x >= 1, solved by non-negative least squares. The solution proves
its margin from below; its multipliers, a point of the convex hull of all y x, prove it from above.

Needs scipy, the extra `comparators`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from mistakebound.core.messages.features import Features
from mistakebound.core.replay.comparators.losses import Losses, losses, rounded

LARGEST = 200_000
"""Examples times features; beyond it the programs take more than some seconds."""
DIGITS = 6
"""Solvers stop within about 1e-7 of the optimum."""
_HINGE_NONE = 1e-6

Matrix = npt.NDArray[np.float64]


class NoSeparator(Exception):
    """It was not computed; the text says why, and the remedy."""


@dataclass(frozen=True, slots=True)
class Separator:
    """A fixed w: that of the largest margin where one separates, else one of the least hinge loss."""

    separable: bool
    margin: float | None
    """min y w.x over |w|: no separator has a larger one. None where none separates."""
    margin_at_most: float | None
    """Proved from above; equal to `margin` but for rounding."""
    losses: Losses
    """Of w with y w.x >= 1 on the examples that it has right by its margin."""


def best_separator(examples: Sequence[tuple[Features, bool]]) -> Separator:
    """Raises NoSeparator without examples, without scipy, or for more than `LARGEST` entries."""
    if not examples:
        raise NoSeparator("there is no labelled example")
    try:
        from scipy import optimize, sparse
    except ImportError:
        raise NoSeparator("the best separator needs scipy: pip install 'mistakebound[comparators]'") from None
    names: dict[str, int] = {}
    for x, _ in examples:
        for name, _value in x:
            names.setdefault(name, len(names))
    entries = len(examples) * len(names)
    if entries > LARGEST:
        raise NoSeparator(
            f"{len(examples)} examples of {len(names)} features are too many for the best separator, "
            f"which takes {LARGEST} entries; replay a part of the data"
        )
    # One row y*x for each example, divided by the largest length so that solvers' tolerances fit.
    rows = np.zeros((len(examples), max(1, len(names))))
    for place, (x, positive) in enumerate(examples):
        for name, value in x:
            rows[place, names[name]] = value if positive else -value
    with np.errstate(over="ignore"):
        size = float(np.sqrt((rows * rows).sum(axis=1)).max()) or 1.0
    if not isfinite(size):
        raise NoSeparator("the examples are too long for the best separator; scale the features")
    rows /= size
    weights, margin, margin_at_most = _fewest_hinge(rows, optimize, sparse), None, None
    separated = float(np.maximum(0.0, 1.0 - rows @ weights).sum()) <= _HINGE_NONE * len(examples)
    if separated and (widest := _widest(rows, optimize)) is not None:
        weights, at_least, at_most = widest
        margin, margin_at_most = rounded(at_least * size, DIGITS), rounded(at_most * size, DIGITS)
    products = rows @ weights
    labels = [positive for _, positive in examples]
    scores = [
        rounded(float(product) if positive else -float(product), DIGITS)
        for product, positive in zip(products, labels, strict=True)
    ]
    return Separator(margin is not None, margin, margin_at_most, losses(labels, scores))


def _fewest_hinge(rows: Matrix, optimize: Any, sparse: Any) -> Matrix:
    """w of the least sum of max(0, 1 - y w.x): a linear program in w and one slack for each row."""
    count, width = rows.shape
    constraints = sparse.hstack([sparse.csr_matrix(-rows), -sparse.identity(count)], format="csr")
    found = optimize.linprog(
        np.concatenate([np.zeros(width), np.ones(count)]),
        A_ub=constraints,
        b_ub=-np.ones(count),
        bounds=[(None, None)] * width + [(0, None)] * count,
        method="highs",
    )
    if found.x is None:
        raise NoSeparator(f"the linear program was not solved: {found.message}")
    weights: Matrix = found.x[:width]
    return weights


def _widest(rows: Matrix, optimize: Any) -> tuple[Matrix, float, float] | None:
    """(w with y w.x >= 1, its margin, the bound from above); None where no w has y w.x > 0 on every row."""
    count, width = rows.shape
    system = np.vstack([rows.T, np.ones(count)])
    target = np.zeros(width + 1)
    target[-1] = 1.0
    multipliers, _ = optimize.nnls(system, target)
    residual = target - system @ multipliers
    if residual[-1] <= 0.0:
        return None
    weights = -(residual[:-1]) / residual[-1] if residual[-1] else residual[:-1]
    smallest = float((rows @ weights).min())
    if smallest <= 0.0:
        return None
    total = float(multipliers.sum())
    at_most = float(np.linalg.norm(rows.T @ multipliers)) / total if total > 0.0 else inf
    return weights / smallest, smallest / float(np.linalg.norm(weights)), at_most
