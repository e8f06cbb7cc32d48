"""How long a member may be outside its group.

A group that shares out anew waits for each member that still works, at most `kafka.max_poll_interval_ms`. A member that is
outside for longer has a client that does not join again by itself, and would be silent for ever; a new session has a new one.
"""

import time
from collections.abc import Callable

import structlog

from mistakebound.log.protocol import Unreachable

MORE_S = 60.0
"""Beyond the longest join that a group allows: for the search for its coordinator, and for joins begun anew."""
SAY_EVERY_S = 30.0

_log = structlog.get_logger(__name__)


class Joining:
    """Told at each poll whether the member is outside its group; a session has one."""

    def __init__(self, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`longest_s`: the longest join that the group allows. `clock` is monotonic, in s."""
        self._limit_s = longest_s + MORE_S
        self._clock = clock
        self._since_s: float | None = None
        self._said_s = 0.0

    def look(self, outside: bool) -> None:
        """Warn every half minute that it is outside. Raises Unreachable beyond the limit."""
        now = self._clock()
        if not outside:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = self._said_s = now
        elif now - self._since_s > self._limit_s:
            raise Unreachable(
                f"the group has not let this worker in for {now - self._since_s:.0f} s, longer than any join takes "
                "(kafka.max_poll_interval_ms, and a minute); the worker joins anew, and should that not help, the "
                "broker that coordinates the group says why in its log"
            )
        elif now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            _log.warning("joining", seconds=round(now - self._since_s), limit_seconds=round(self._limit_s))
