"""The log on a real broker, for tests of what only Kafka does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mistakebound.core.records import Topic
from mistakebound.log.kafka import KafkaLog
from mistakebound.settings import Settings
from tests.log.support.worker import Worker

PARTITIONS = 2

Open = Callable[..., KafkaLog]


@pytest.fixture
def open_log(kafka_bootstrap: str, prefix: str) -> Iterator[Open]:
    """Open the log of this test's prefix, any number of times; `kafka` options as keywords."""
    with ExitStack() as opened:

        def open_log(bootstrap: str = kafka_bootstrap, **kafka: Any) -> KafkaLog:
            settings = Settings.model_validate(
                {"log": {"url": f"kafka://{bootstrap}", "prefix": prefix}, "kafka": kafka}
            )
            return opened.enter_context(KafkaLog(settings))

        yield open_log


@pytest.fixture
def make_log(open_log: Open) -> Open:
    """Open the log and create its topics: `config` by topic, `kafka` options as keywords."""

    def make_log(config: dict[Topic, dict[str, str]] | None = None, **kafka: Any) -> KafkaLog:
        log = open_log(**kafka)
        log.create_topics(PARTITIONS, config or {})
        return log

    return make_log


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    """Start workers on a log; they leave with the test."""
    with ExitStack() as started:

        def start(log: KafkaLog, slot: str = "slot") -> Worker:
            worker = Worker(log, slot)
            started.callback(worker.close)
            return worker.start()

        yield start
