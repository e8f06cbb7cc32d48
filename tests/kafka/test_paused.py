"""A side that was paused, on both clients of Kafka."""

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from service.log import open_log
from service.log.protocol import Log
from service.settings import LogSettings, Settings
from tests.contract.worker import PATIENCE_S, Worker, example


@pytest.fixture(params=["kafka", "kafka+confluent"])
def log(request: pytest.FixtureRequest, kafka_bootstrap: str, prefix: str) -> Iterator[Log]:
    settings = Settings(log=LogSettings(url=f"{request.param}://{kafka_bootstrap}", prefix=prefix))
    with open_log(settings) as opened:
        opened.create_topics(2, {"examples": {"retention.ms": "-1"}})
        yield opened


@pytest.fixture
def evict(kafka_bootstrap: str, prefix: str) -> Iterator[Callable[[], None]]:
    """Removes every member, as the broker does with one that it has not heard of for long."""
    group = Settings(log=LogSettings(prefix=prefix)).group
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)

    def remove() -> None:
        members = admin.describe_groups([group])[group]["members"]
        admin.remove_group_members(group, [MemberToRemove(each["member_id"]) for each in members])

    yield remove
    admin.close()


def test_a_new_generation_forgets_what_was_paused(log: Log, evict: Callable[[], None]) -> None:
    """Whoever comes back from a rebalance has no reason to wait any more, and would not know to resume."""
    log.append(example(0, b"%d" % n) for n in range(5))
    worker = Worker(log).start()
    try:
        worker.take(5)
        worker.session.pause([("examples", 0)])
        evict()
        deadline = time.monotonic() + PATIENCE_S
        while (polled := worker.session.poll(1)).generation == worker.generation or not polled.partitions:
            assert time.monotonic() < deadline
        worker.generation = polled.generation
        for partition in polled.partitions:
            worker.seek(partition, 0, 0)
        assert [record.value for record in worker.take(5)] == [b"%d" % n for n in range(5)]
    finally:
        worker.close()
