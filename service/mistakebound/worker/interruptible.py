"""A rebuild that can be interrupted: a worker that was told to stop has no use for it."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log, Unreachable

EVERY = 1_000
"""Records read between two checks of whether to stop."""
SLICE_S = 1.0
"""The longest wait for the log between two such checks."""
WAIT_S = 30.0
"""A read that makes no progress for this long is given up."""


class Interrupted(Exception):
    """The worker was told to stop while it restored. Nothing is open, and nothing was changed."""


class InterruptibleLog:
    """A log, except that `read` raises Interrupted once the worker is told to stop, also while it waits."""

    def __init__(self, log: Log, interrupted: Callable[[], bool]) -> None:
        self._log, self._interrupted = log, interrupted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, topic: Topic, partition: int, start: int, stop: int | None = None) -> Iterator[Record]:
        """As `Log.read`. Raises Interrupted, too."""
        bound = self._log.high_watermark(topic, partition) if stop is None else stop
        return self._records(topic, partition, start, bound)

    def _records(self, topic: Topic, partition: int, start: int, bound: int) -> Iterator[Record]:
        done, given_up_s = False, time.monotonic() + WAIT_S
        while not done:
            self._check()
            try:
                records = self._log.read(topic, partition, start, bound, wait_s=SLICE_S)
                for number, record in enumerate(records, start=1):
                    if number % EVERY == 0:
                        self._check()
                    yield record
                    start, given_up_s = record.offset + 1, time.monotonic() + WAIT_S
                done = True
            except Unreachable:
                if time.monotonic() > given_up_s:
                    raise

    def _check(self) -> None:
        if self._interrupted():
            raise Interrupted
