"""Finite concept classes over n Boolean variables, by name, each evaluated on an example at once.

A class is a function from an active set (a bit for each variable) to one truth value for each of its |C|
concepts, in a fixed order: the most general first. Classes of more than `LARGEST` concepts are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np
import numpy.typing as npt

from mistakebound.settings import LearnerSettings

LARGEST = 2**22
INT64_BITS = 62

Truths = npt.NDArray[np.bool_]


class TooManyConcepts(ValueError):
    """The class has more concepts than can be kept; the text names its size."""


@dataclass(frozen=True, slots=True)
class ConceptClass:
    """`values(active)`: truth of each concept [|C|] for the set of active variables, as a bit mask."""

    name: str
    size: int
    values: Callable[[int], Truths]
    spelled: Callable[[int], str]
    """A concept in words: `x1 and not x3`."""


NAMES = {
    "monotone-conjunctions": "all conjunctions of variables: 2^n",
    "conjunctions": "all conjunctions of literals: 3^n",
    "k-conjunctions:K": "conjunctions of at most K literals",
    "thresholds": "at least t of the n variables, t = 0 .. n + 1: n + 2",
    "table:0110,1001": "explicit truth tables, 2^n digits each, the first variable the lowest bit of the row",
    "@FILE": "the same, one table a line",
}


def variables_of(settings: LearnerSettings) -> tuple[str, ...] | None:
    """The declared Boolean variables by name; None where none are declared."""
    declared_as = settings.variables
    return tuple(map(str, range(declared_as))) if isinstance(declared_as, int) else declared_as


def named(spec: str, variables: tuple[str, ...]) -> ConceptClass:
    """The class that `spec` names. Raises TooManyConcepts; ValueError for an unknown name or a wrong table."""
    n = len(variables)
    kind, _, argument = spec.partition(":")
    if kind == "monotone-conjunctions":
        _limit(kind, 2**n)
        order = sorted(range(2**n), key=lambda mask: (mask.bit_count(), mask))
        return _conjunctions(kind, variables, [(mask, 0) for mask in order])
    if kind == "conjunctions":
        _limit(kind, 3**n)
        return _conjunctions(kind, variables, _literal_sets(n, n))
    if kind == "k-conjunctions":
        k = _count(spec, argument, n)
        _limit(spec, sum(comb(n, size) * 2**size for size in range(k + 1)))
        return _conjunctions(spec, variables, _literal_sets(n, k))
    if kind == "thresholds":
        steps = np.arange(n + 2)
        return ConceptClass(
            kind, n + 2, lambda active: active.bit_count() >= steps, lambda t: f"at least {t} of {n}"
        )
    if kind == "table":
        return _tables(argument, n)
    raise ValueError(f"learner.concepts: {spec!r} must be one of {', '.join(NAMES)}")


def _limit(name: str, size: int) -> None:
    if size > LARGEST:
        raise TooManyConcepts(
            f"learner.concepts: {name} has {_spelled(size)} concepts over these variables, at most {LARGEST} can be kept; "
            "declare fewer variables or a smaller class, or take elimination or littlestone-winnow"
        )


def _spelled(size: int) -> str:
    return str(size) if size < 10**20 else f"more than 2^{size.bit_length() - 1}"


def _count(spec: str, text: str, n: int) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= n:
        raise ValueError(f"learner.concepts: {spec!r} needs a number from 0 to {n}, as in k-conjunctions:2")
    return int(text)


def _literal_sets(n: int, most: int) -> list[tuple[int, int]]:
    """(variables that must be true, variables that must be false), shortest first."""
    return [
        (
            sum(1 << place for place, sign in zip(places, signs, strict=True) if sign),
            sum(1 << place for place, sign in zip(places, signs, strict=True) if not sign),
        )
        for size in range(most + 1)
        for places in combinations(range(n), size)
        for signs in product((True, False), repeat=size)
    ]


def _conjunctions(name: str, variables: tuple[str, ...], literals: list[tuple[int, int]]) -> ConceptClass:
    wide = len(variables) > INT64_BITS  # then Python's own integers
    table = np.array(literals, dtype=object if wide else np.int64).reshape(-1, 2)
    true, false = table[:, 0], table[:, 1]

    def values(active: int) -> Truths:
        holds: Truths = ((true & ~active) == 0) & ((false & active) == 0)
        return holds

    def spelled(place: int) -> str:
        must, never = literals[place]
        words = [one for bit, one in enumerate(variables) if must >> bit & 1]
        words += [f"not {one}" for bit, one in enumerate(variables) if never >> bit & 1]
        return " and ".join(words) or "true"

    return ConceptClass(name, len(literals), values, spelled)


def _tables(text: str, n: int) -> ConceptClass:
    rows = [row for row in text.split(",") if row]
    for number, row in enumerate(rows, 1):
        if len(row) != 2**n or set(row) - {"0", "1"}:
            raise ValueError(f"learner.concepts: table {number} is not {2**n} digits of 0 and 1 (n = {n})")
    if not rows:
        raise ValueError("learner.concepts: there is no table; write table:0110,1001")
    _limit("table", len(rows))
    table = np.array([[digit == "1" for digit in row] for row in rows], dtype=np.bool_)
    return ConceptClass("table", len(rows), lambda active: table[:, active], lambda place: rows[place])
