"""Several workers start at once: one of them begins the first epoch, and the others see that it has begun."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mistakebound.core.records import Record, Topic
from mistakebound.log.protocol import Log
from mistakebound.worker.epochs.epochs import begin_first
from tests.worker.support.working import Run, opened, settings_on, stream


class OvertakenLog:
    """A log on which another worker begins the epoch and works, when this worker reads `topic` for the n-th time."""

    def __init__(self, log: Log, topic: Topic, reads: int, work: Any) -> None:
        self._log, self._topic, self._reads, self._work = log, topic, reads, work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, topic: Topic, *arguments: Any, **options: Any) -> Iterator[Record]:
        found = list(self._log.read(topic, *arguments, **options))
        if topic == self._topic:
            self._reads -= 1
            if self._reads == 0:
                self._work()
        return iter(found)


def test_a_worker_that_is_overtaken_while_it_looks_is_not_refused(tmp_path: Path) -> None:
    """Between two looks another one begins and publishes results: this is no lost topic of updates."""
    for number in range(1, 4):
        settings = settings_on(tmp_path / f"{number}.db")
        with opened(settings) as log, opened(settings) as of_other:
            log.append(stream(5))
            overtaken: Any = OvertakenLog(log, "updates", number, lambda of=of_other, s=settings: Run(of, s))

            begin_first(overtaken, settings)

            assert next(iter(log.read("updates", 0, 0))) is not None
