"""An input that was paused, on both clients of Kafka."""

import time
from collections.abc import Iterator

import pytest

from mistakebound.log import open_log
from mistakebound.log.kafka import KafkaLog
from mistakebound.settings import LogSettings, Settings
from tests.log.support.breaking import evict
from tests.log.support.worker import PATIENCE_S, Worker, example


@pytest.fixture(params=["kafka", "kafka+confluent"])
def log(request: pytest.FixtureRequest, kafka_bootstrap: str, prefix: str) -> Iterator[KafkaLog]:
    settings = Settings(log=LogSettings(url=f"{request.param}://{kafka_bootstrap}", prefix=prefix))
    with open_log(settings) as opened:
        assert isinstance(opened, KafkaLog)
        opened.create_topics(2, {"examples": {"retention.ms": "-1"}})
        yield opened


def test_a_new_generation_forgets_what_was_paused(log: KafkaLog) -> None:
    """Whoever comes back from a rebalance has no reason to wait any more, and would not know to resume."""
    log.append(example(0, b"%d" % n) for n in range(5))
    worker = Worker(log).start()
    try:
        worker.take(5)
        worker.session.pause([("examples", 0)])
        evict(log)
        deadline = time.monotonic() + PATIENCE_S
        while (polled := worker.session.poll(1)).generation == worker.generation or not polled.partitions:
            assert time.monotonic() < deadline
        worker.generation = polled.generation
        for partition in polled.partitions:
            worker.seek(partition, 0, 0)
        assert [record.value for record in worker.take(5)] == [b"%d" % n for n in range(5)]
    finally:
        worker.close()
