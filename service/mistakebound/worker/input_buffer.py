"""The records that were polled and that no step has taken yet.

1. All of them are of one generation. When a poll brings another one, everything is dropped, and nothing is
   buffered until the assignment is taken over.
2. The group is polled only here, and only while no transaction is open.
3. They are bounded: an input with two steps' worth of records is paused until half of them are taken.
"""

import time
from collections.abc import Callable, Collection, Sequence

from mistakebound.core.records import INPUTS, Lost, Record, TopicPartition
from mistakebound.core.step.merge import Merge
from mistakebound.log.protocol import Session
from mistakebound.settings import BatchSettings
from mistakebound.worker.events import Observe, PollReturned

STEPS = 2
"""How many steps' worth of records is buffered: of one that is committed, and of one that is made meanwhile."""
STEPS_BYTES = 4
"""So many times what a step may write in bytes is buffered."""
FEW = 40
"""A poll that brings less than a fortieth of a step's records has brought all there were."""
NONE = -1
"""Not a generation; older than every one."""


class InputBuffer:
    """One session's input. `merge` holds the records, `generation` is theirs."""

    def __init__(
        self,
        session: Session,
        batch: BatchSettings,
        observe: Observe,
        noted: Callable[[Sequence[Record]], None] = lambda records: None,  # noqa: ARG005
    ) -> None:
        """`noted` is shown all records that are buffered."""
        self._noted = noted
        self._session, self._batch, self._observe = session, batch, observe
        self._inputs: Sequence[TopicPartition] = ()
        self._paused: Sequence[TopicPartition] = ()
        """Given back, so that no poll brings records of them."""
        self.merge = Merge(())
        self.generation = NONE
        self.assigned: tuple[int, ...] | None = None
        """The partitions of a new assignment, while it is not taken over."""

    def fill(self, wait_s: float) -> bool:
        """Buffer the records that arrived, waiting at most `wait_s` for the first. False once the group has moved
        on: `assigned` has the new partitions, and `begin` must follow."""
        if self.assigned is None:
            pause, resume = self.merge.pausing()
            if pause:
                self._session.pause(pause)
            if resume:
                self._session.resume(resume)
            self._poll(wait_s)
        return self.assigned is None

    def begin(self, partitions: Sequence[int], lost: Sequence[Lost] = ()) -> None:
        """These were taken over, and the session was placed behind what is lost: buffer their records from now on."""
        most = STEPS * self._batch.max_records
        self.merge = Merge(partitions, most, STEPS_BYTES * self._batch.max_bytes)
        self.merge.add(lost)
        self._inputs = _inputs(partitions)
        if self._paused:
            self._session.resume(self._paused)
            self._paused = ()
        self.assigned = None

    def drop(self) -> None:
        """The group has moved on: the next poll brings the new assignment."""
        self.merge, self.generation, self._inputs = Merge(()), NONE, ()

    def give_back(self) -> None:
        """These are not to be worked on: the next poll brings the assignment again, or another, and no records."""
        if not self.is_given_back:
            self._paused = self._inputs if self.assigned is None else _inputs(self.assigned)
            self._session.pause(self._paused)
        self.drop()
        self.assigned = None

    @property
    def is_given_back(self) -> bool:
        """Whether the next poll is to bring an assignment."""
        return self.generation == NONE

    def drained(self) -> Collection[TopicPartition]:
        """Inputs with nothing left here or in the log; looked up only where the next record depends on it."""
        dry = self.merge.dry()
        return self._session.drained(dry) if dry else ()

    def worked_off(self) -> bool:
        """Whether everything that the owned partitions hold was taken. False while none is owned."""
        inputs = self._inputs  # the group may not have shared out yet
        return bool(inputs) and len(self._session.drained(inputs)) == len(inputs)

    def _poll(self, timeout_s: float) -> None:
        """Poll until two steps' worth of records arrived, or the bytes of one, the time is up, or few arrive."""
        batch = self._batch
        closing = time.monotonic() + batch.max_delay.total_seconds()
        records = size = 0
        while True:
            polled = self._session.poll(timeout_s)
            self._observe(PollReturned(time.time()))
            if polled.generation != self.generation:
                self.drop()
                self.generation, self.assigned = polled.generation, polled.partitions
                return
            size += self.merge.add(polled.records)
            self._noted(polled.records)
            records += len(polled.records)
            full = records >= STEPS * batch.max_records or size >= batch.max_bytes
            # Where few arrive, polling again delays more than it gains.
            few = FEW * len(polled.records) < batch.max_records
            if full or few or time.monotonic() >= closing:
                return
            timeout_s = 0.0


def _inputs(partitions: Sequence[int]) -> list[TopicPartition]:
    return [(topic, p) for topic in INPUTS for p in partitions]
