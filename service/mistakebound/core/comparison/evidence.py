"""Evidence that two streams of predictions are not equally good: a bet against it, which may be looked at every day.

Of the ids that both predicted and whose label is known, only those count where one was right and the other wrong: b times
the first, c times the second, n = b + c. Equally good means that the next such id is as likely to speak for the one as for
the other, whatever came before. Bet against this: start with 1, and stake it on "the first is right with probability p";
after n of them the stake is worth (2p)^b (2(1 - p))^c, in a fair game. Spread over all p from 0 to 1 alike it is worth

    E = 2^n b! c!/(n + 1)! = 2^n / ((n + 1) C(n, b)).

E begins at 1, is never negative, and with both outcomes equally likely its mean after the next id is what it is now:
2 (b + 1)/(n + 2) and 2 (c + 1)/(n + 2) are its two factors, and their mean is 1. Who cannot expect to gain reaches
twenty times his stake with a probability of at most 1/20 (Ville 1939), at any time, however often he looks and whenever
he stops. Integers all through, so that nothing is rounded.
"""

from fractions import Fraction
from math import comb
from sys import float_info
from typing import NamedTuple

ENOUGH = 20
"""Evidence that fair streams ever reach with a probability of at most 1/20."""
MOST_DIGITS = 40
"""A fraction with more of them above or below its line is written with factorials."""
NEAR = 1e-6
"""Running products of floats are off by less, relatively: nearer than this to `ENOUGH`, integers decide."""


def evidence(first: int, second: int) -> Fraction:
    """E for so many ids that speak for the first and for the second."""
    n = first + second
    return Fraction(1 << n, (n + 1) * comb(n, first))


def as_text(first: int, second: int) -> str:
    """E exactly: `2048/165`, or with factorials where that is long."""
    n = first + second
    if n <= MOST_DIGITS * 3:  # its numerator is a power of 2, its denominator less than one
        found = str(evidence(first, second))
        if max(map(len, found.split("/"))) <= MOST_DIGITS:
            return found
    return f"2^{n} * {first}! * {second}! / {n + 1}!"


def as_number(first: int, second: int) -> float:
    """E, rounded once; the largest float where it is larger."""
    n = first + second
    try:
        return (1 << n) / ((n + 1) * comb(n, first))
    except OverflowError:
        return float_info.max


class Reached(NamedTuple):
    """When E first came to `ENOUGH`: so many spoke for the first and the second then."""

    first: int
    second: int


class Bet:
    """E along a stream, and when it first came to `ENOUGH`."""

    def __init__(self) -> None:
        self.first = self.second = 0
        self.reached: Reached | None = None
        self._value = 1.0
        """E but for rounding; below `ENOUGH` until that is reached, and not kept up afterwards."""

    def take(self, *, first: bool) -> None:
        """One more id speaks for the first, or else for the second."""
        won = self.first if first else self.second
        if self.reached is None:
            self._value *= 2 * (won + 1) / (self.first + self.second + 2)
        if first:
            self.first += 1
        else:
            self.second += 1
        if self.reached is None and self._value > ENOUGH * (1 - NEAR) and self._is_enough():
            self.reached = Reached(self.first, self.second)

    def _is_enough(self) -> bool:
        if self._value > ENOUGH * (1 + NEAR):
            return True
        n = self.first + self.second
        return (1 << n) >= ENOUGH * (n + 1) * comb(n, self.first)
