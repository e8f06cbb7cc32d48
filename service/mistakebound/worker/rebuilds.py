"""How often a worker may rebuild from the log before it gives up, how long it rests in between, and how large its steps are
then: a network may be too slow for a whole one within a transaction's time, and it would fail again and again.
"""

import time
from collections import deque
from collections.abc import Callable

from mistakebound.log.protocol import TransactionFailed

MOST = 10
"""Rebuilds allowed within the window."""
WINDOW_S = 300.0
FIRST_REST_S = 0.1
LONGEST_REST_S = 1.0
FENCED_AGAIN_S = 60.0
STEPS_TO_DOUBLE = 16
"""So many are committed between a transaction that failed and steps that are twice as large again."""


class GaveUp(Exception):
    """Too many rebuilds in a short time; the text says why the last one was needed (exit code 7)."""


class Rebuilds:
    """Counts rebuilds within the window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is monotonic, in s."""
        self._clock = clock
        self._times: deque[float] = deque()
        self._fenced_s: float | None = None
        self._halvings = self._committed = 0

    def refuse_fenced_again(self, error: Exception) -> None:
        """Raises `error` if the worker was fenced less than a minute ago: another process works in our slot."""
        now, before_s = self._clock(), self._fenced_s
        if before_s is not None and now - before_s < FENCED_AGAIN_S:
            raise error
        self._fenced_s = now

    def committed(self, steps: int) -> None:
        """So many steps went well."""
        self._committed += steps
        while self._halvings and self._committed >= STEPS_TO_DOUBLE:
            self._committed -= STEPS_TO_DOUBLE
            self._halvings -= 1

    def largest_step(self, most: int) -> int:
        """How many of at most `most` records a step may have at present."""
        return max(1, most >> self._halvings)

    def count(self, error: Exception) -> float:
        """One more rebuild, because of `error`; returns how long to rest first, in s. Raises GaveUp.

        When a broker restarts, everything fails at once; that must not use up the rebuilds within a second.
        """
        if isinstance(error, TransactionFailed):
            self._halvings, self._committed = self._halvings + 1, 0
        now = self._clock()
        self._times.append(now)
        while now - self._times[0] > WINDOW_S:
            self._times.popleft()
        if len(self._times) > MOST:
            raise GaveUp(f"rebuilt {len(self._times)} times within {WINDOW_S:.0f} s, at last for: {error}")
        return float(min(LONGEST_REST_S, FIRST_REST_S * 2 ** (len(self._times) - 1)))
