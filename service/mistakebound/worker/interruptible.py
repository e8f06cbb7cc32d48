"""A rebuild that can be interrupted: a worker that was told to stop has no use for it."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import structlog

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log, Unreachable

EVERY = 1_000
"""Records read between two checks of whether to stop."""
SLICE_S = 1.0
"""The longest wait for the log between two such checks."""
WAIT_S = 30.0
"""A read that makes no progress for this long is given up."""


FIRST_LINE_S = 2.0
"""A restoring that takes longer tells how far it is, and again whenever that time has doubled."""

_log = structlog.get_logger(__name__)


class Interrupted(Exception):
    """The worker was told to stop while it restored. Nothing is open, and nothing was changed."""


class InterruptibleLog:
    """A log, except that `read` raises Interrupted once the worker is told to stop, also while it waits."""

    def __init__(self, log: Log, interrupted: Callable[[], bool]) -> None:
        self._log, self._interrupted = log, interrupted
        self._began_s, self._told_s = time.monotonic(), FIRST_LINE_S

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
                        self._tell(record, bound)
                    yield record
                    start, given_up_s = record.offset + 1, time.monotonic() + WAIT_S
                done = True
            except Unreachable as error:
                if time.monotonic() > given_up_s:
                    raise Unreachable(f"{error}; asked again and again for {WAIT_S:g} s") from error

    def _tell(self, record: Record, bound: int) -> None:
        passed_s = time.monotonic() - self._began_s
        if passed_s < self._told_s:
            return
        self._told_s = 2 * passed_s
        _log.info(
            "restoring",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            end=bound,
            seconds=round(passed_s, 1),
        )

    def _check(self) -> None:
        if self._interrupted():
            raise Interrupted
