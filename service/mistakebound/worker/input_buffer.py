"""The records that were polled and that no step has taken yet.

1. All of them are of one generation. When a poll brings another one, everything is dropped, and nothing is
   buffered until the assignment is taken over.
2. The group is polled only here, and only while no transaction is open.
3. They are bounded: an input with some steps' worth of records waits, paused, until half of them are taken.
"""

import time
from collections.abc import Collection, Sequence

from mistakebound.core.records import INPUTS, Topic
from mistakebound.core.step.merge import Merge
from mistakebound.log.protocol import Session
from mistakebound.settings import BatchSettings
from mistakebound.worker.events import Observer, PollReturned

STEPS = 4
"""Steps' worth of records that is buffered."""
FEW = 10
"""A poll that brings less than this part of a step has brought all there was."""
NONE = -1
"""Older than every generation."""


class InputBuffer:
    """One session's input. `merge` holds the records, `generation` is theirs."""

    def __init__(self, session: Session, batch: BatchSettings, observers: Observer) -> None:
        self._session, self._batch, self._observers = session, batch, observers
        self._inputs: Sequence[tuple[Topic, int]] = ()
        self.merge = Merge(())
        self.generation = NONE
        self.assigned: tuple[int, ...] | None = None
        """The partitions of a new assignment, while it is not taken over."""

    def fill(self, wait_s: float) -> bool:
        """Buffer what has come, waiting at most `wait_s` for the first of it. False once the group has moved on:
        `assigned` says where to, and `begin` comes next."""
        if self.assigned is None:
            self._pause()
            self._poll(wait_s)
        return self.assigned is None

    def begin(self, partitions: Sequence[int]) -> None:
        """These are taken over, and the session is placed: buffer their records from now on."""
        most = STEPS * self._batch.max_records
        self.merge = Merge(partitions, most, STEPS * self._batch.max_bytes)
        self._inputs = [(topic, p) for topic in INPUTS for p in partitions]
        self.assigned = None

    def drop(self) -> None:
        """The group has moved on: the next poll tells the new assignment."""
        self.merge, self.generation, self._inputs = Merge(()), NONE, ()

    def drained(self) -> Collection[tuple[Topic, int]]:
        """Inputs of which nothing is left, neither here nor in the log, where that decides what comes next."""
        dry = self.merge.dry()
        return self._session.drained(dry) if dry else ()

    def worked_off(self) -> bool:
        """Whether everything that the owned partitions hold was taken. False while none is owned."""
        inputs = self._inputs  # the group may not have shared out yet
        return bool(inputs) and len(self._session.drained(inputs)) == len(inputs)

    def _poll(self, timeout_s: float) -> None:
        """Poll until some steps' worth has come, its time is up, or little comes."""
        batch = self._batch
        closing = time.monotonic() + batch.max_delay.total_seconds()
        records = size = 0
        while True:
            polled = self._session.poll(timeout_s)
            self._observers.observe(PollReturned(time.time()))
            if polled.generation != self.generation:
                self.drop()
                self.generation, self.assigned = polled.generation, polled.partitions
                return
            size += self.merge.add(polled.records)
            records += len(polled.records)
            full = records >= STEPS * batch.max_records or size >= batch.max_bytes
            # Where little comes, polling again delays more than it gains.
            little = FEW * len(polled.records) < batch.max_records
            if full or little or time.monotonic() >= closing:
                return
            timeout_s = 0.0

    def _pause(self) -> None:
        """Pause inputs of which too much is buffered, resume those of which enough was taken."""
        pause, resume = self.merge.pausing()
        if pause:
            self._session.pause(pause)
        if resume:
            self._session.resume(resume)
