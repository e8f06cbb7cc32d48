"""A worker with its status page, in a thread of the test's process: fed step by step, asked over HTTP."""

import contextlib
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mistakebound.core.records import Outgoing
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.process import work
from tests.worker.support.working import example, label, opened, settings_for

PATIENCE_S = 60.0


class Served:
    """A running worker: `send` to its log, `status` over HTTP."""

    def __init__(self, log: Log, address: str) -> None:
        self.log, self.url = log, f"http://{address}/"
        self.sent, self._ms = 0, 0

    def send(self, records: Sequence[Outgoing]) -> None:
        self.log.append(records)

    def status(self) -> Any:
        with urllib.request.urlopen(self.url + "api/status", timeout=20) as answer:
            return json.load(answer)

    def until(self, met: Callable[[Any], Any]) -> Any:
        """The first status of which `met` is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not met(told := self.status()):
            assert time.monotonic() < deadline, told
            time.sleep(0.05)
        return told

    def labelled(self, count: int) -> Any:
        """The status once so many labels are applied and the model is measured since."""
        return self.until(
            lambda told: told["labelled"] == count and sum(told["model"]["updates"]) == told["updates"]
        )

    def rows(self, features: Sequence[Any], labels: Sequence[Any]) -> None:
        """Examples, each followed by its label within the millisecond; None for a label that does not come."""
        partitions, records = self.log.partitions, list[Outgoing]()
        self._ms = max(self._ms, round(time.time() * 1000) - len(features))
        for values, said in zip(features, labels, strict=True):
            records.append(example(self.sent, values, self._ms, partitions))
            if said is not None:
                records.append(label(self.sent, said, self._ms, partitions))
            self.sent += 1
            self._ms += 1
        self.send(records)


@contextlib.contextmanager
def working(log: Log, settings: Settings) -> Iterator[Served]:
    """Run a worker on a log until the block ends; raises what ended it."""
    stop, listening, failures = threading.Event(), threading.Event(), list[BaseException]()
    addresses: list[str] = []

    def serving(url: str) -> None:
        addresses.append(url.removeprefix("http://"))
        listening.set()

    def run() -> None:
        try:
            work(
                log,
                settings,
                lambda idle: stop.is_set(),
                log_format="json",
                log_level="error",
                serving=serving,
            )
        except BaseException as error:  # noqa: BLE001 - it is the test's to see
            failures.append(error)
            listening.set()

    thread = threading.Thread(target=run, name="worker")
    thread.start()
    try:
        assert listening.wait(PATIENCE_S)
        if not failures:
            yield Served(log, addresses[0])
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    if failures:
        raise failures[0]


def paged(**sections: Any) -> Settings:
    """Settings of a worker with its page on any free port."""
    return settings_for(**{"http": {"address": "127.0.0.1:0"}, **sections})


@contextlib.contextmanager
def served(partitions: int = 1, **sections: Any) -> Iterator[Served]:
    """A worker on a log of its own in memory."""
    settings = paged(**sections)
    with opened(settings, partitions) as log, working(log, settings) as worker:
        yield worker
