"""A last resort against calls of the client that never return.

kafka-python waits without a limit in several places while a broker is away. Our own deadlines come
first; where they do not help, the watchdog ends the process so that its successor can go on.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mistakebound.exit_codes import ExitCode

TICK_S = 0.25
FROZEN_S = 120.0
REARM_S = 5.0
"""Each time costs 0.1 ms of a thread."""
STDERR = 2
"""The descriptor: whoever embeds a log may have put something else in place of `sys.stderr`."""


def leave(what: str) -> None:
    """End the process at once (exit code 7), and say on stderr what hung, and where each thread stood."""
    sys.stderr.write(f"mistakebound: {what} did not return in time; ending the process\n")
    sys.stderr.flush()
    faulthandler.dump_traceback()
    os._exit(ExitCode.GAVE_UP)


class Watchdog:
    """One thread that looks at open deadlines every quarter of a second, from any number of threads."""

    def __init__(self, bark: Callable[[str], None] = leave) -> None:
        self._bark = bark
        self._open: dict[object, tuple[float, str]] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._guards_interpreter = False

    def guard_interpreter(self) -> None:
        """From now on also end the process (exit code 1) once no thread of Python has run for two minutes.

        confluent-kafka 2.16 holds the interpreter's lock while it waits for librdkafka's own thread: where it begins a
        transaction, places or pauses partitions, or asks for its membership. Should that thread stand still, so would this
        one. faulthandler's needs no lock; it says on stderr where each thread stood. A process that is stopped from outside
        for as long (SIGSTOP) ends when it wakes up.
        """
        self._guards_interpreter = True
        self._start()

    @contextmanager
    def limit(self, seconds: float, what: str) -> Iterator[None]:
        """Call `bark` with `what` when the block takes longer than this."""
        self._start()
        block = object()
        self._open[block] = (time.monotonic() + seconds, what)
        try:
            yield
        finally:
            self._open.pop(block, None)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="kafka-watchdog", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        armed_s: float | None = None
        while not self._closed.wait(TICK_S):
            now = time.monotonic()
            if self._guards_interpreter and (armed_s is None or now - armed_s >= REARM_S):
                faulthandler.dump_traceback_later(FROZEN_S, exit=True, file=STDERR)
                armed_s = now
            for block, (deadline, what) in list(self._open.items()):
                if now > deadline and self._open.pop(block, None) is not None:
                    self._bark(what)
        if armed_s is not None:
            faulthandler.cancel_dump_traceback_later()
