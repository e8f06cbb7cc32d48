"""How often a worker may rebuild from the log before it gives up, and how long it rests in between."""

import time
from collections import deque
from collections.abc import Callable

MOST = 10
"""Rebuilds allowed within the window."""
WINDOW_S = 300.0
FIRST_REST_S = 0.1
LONGEST_REST_S = 1.0
FENCED_AGAIN_S = 60.0


class GaveUp(Exception):
    """Too many rebuilds in a short time; the text says why the last one was needed (exit code 7)."""


class Rebuilds:
    """Counts rebuilds within the window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is monotonic, in s."""
        self._clock = clock
        self._times: deque[float] = deque()
        self._fenced_s: float | None = None

    def refuse_fenced_again(self, error: Exception) -> None:
        """Raises `error` if the worker was fenced less than a minute ago: another process works in our slot."""
        now, before_s = self._clock(), self._fenced_s
        if before_s is not None and now - before_s < FENCED_AGAIN_S:
            raise error
        self._fenced_s = now

    def count(self, error: Exception) -> float:
        """One more rebuild, because of `error`; returns how long to rest first, in s. Raises GaveUp.

        When a broker restarts, everything fails at once; that must not use up the rebuilds within a second.
        """
        now = self._clock()
        self._times.append(now)
        while now - self._times[0] > WINDOW_S:
            self._times.popleft()
        if len(self._times) > MOST:
            raise GaveUp(f"rebuilt {len(self._times)} times within {WINDOW_S:.0f} s, at last for: {error}")
        return float(min(LONGEST_REST_S, FIRST_REST_S * 2 ** (len(self._times) - 1)))
