"""Workers on both Kafka clients in one group: whichever owns a partition, nothing is lost or doubled."""

import pytest

from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment, assigned
from tests.faults.support.recount import recount
from tests.faults.support.stream import SETTINGS, stream

HALVES = ('"partitions": [0, 1]', '"partitions": [2, 3]')


@pytest.mark.kafka
def test_a_killed_worker_on_librdkafka_hands_over_and_takes_over(
    kafka_bootstrap: str, prefix: str, children: Children
) -> None:
    """It shares the partitions with a worker on kafka-python, is killed, comes back and goes on alone."""
    with Deployment(
        f"kafka://{kafka_bootstrap}",
        prefix,
        children,
        *SETTINGS,
        "batch.max_records=200",
        "kafka.session_timeout_ms=5000",
    ) as place:
        records = stream(4_000, 11)
        place.send(records[:1_000])
        options = [each.replace("kafka://", "kafka+confluent://") for each in place.options]
        more = ("--set", "worker.slot=other", "--set", "checkpoint.url=")
        first, second = place.worker(), children.start("run", *options, *more)
        _share(first, second)
        place.send(records[1_000:3_000])
        place.works(second)
        second.kill()
        place.send(records[3_000:6_000])
        second = assigned(children.start("run", *options, *more))
        place.works_off(second)
        first.kill()
        place.send(records[6_000:])
        place.finish(second)
        found = recount(place.log)
        assert len(found.predictions) == 4_000
        children.ok("audit", *place.options)


def _share(*workers: Child) -> None:
    for worker in workers[::-1]:
        until(
            lambda own=worker: any(half in own.err() for half in HALVES), PATIENCE_S, "it owns half", worker
        )
