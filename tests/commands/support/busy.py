"""A log that is never at rest: a worker finishes another piece of work whenever it is read."""

from collections.abc import Iterator
from random import Random
from typing import Any

from mistakebound.core.records import Outgoing, Record
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.worker.support.working import Run, example, label


class BusyLog:
    """Passes every call on. Before a read or a watermark, at most `times` times, some examples of each partition are
    labelled, so that one step writes to all of them."""

    def __init__(self, log: Log, settings: Settings, times: int = 20) -> None:
        self._log, self._settings, self._left = log, settings, times
        self._random, self._sent = Random(7), 0
        self.work()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def high_watermark(self, topic: Any, partition: int) -> int:
        self._interrupt()
        return self._log.high_watermark(topic, partition)

    def read(self, *arguments: Any, **options: Any) -> Iterator[Record]:
        self._interrupt()
        return iter(list(self._log.read(*arguments, **options)))

    def _interrupt(self) -> None:
        if self._left:
            self._left -= 1
            self.work()

    def work(self) -> None:
        records: list[Outgoing] = []
        for _ in range(3 * self._log.partitions):
            values = {name: self._random.uniform(-1, 1) for name in "abc"}
            now, partitions = 1_000 + self._sent, self._log.partitions
            records.append(example(self._sent, values, now, partitions))
            records.append(label(self._sent, self._random.random() < 0.5, now, partitions))
            self._sent += 1
        self._log.append(records)
        Run(self._log, self._settings)
