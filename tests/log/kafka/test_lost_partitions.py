"""A member that the group throws out has no partitions until it has joined again, and finds out at a poll."""

from collections.abc import Callable

from mistakebound.core.records import TopicPartition
from mistakebound.log.kafka import KafkaLog
from tests.log.kafka.conftest import PARTITIONS, Open
from tests.log.support.worker import Worker, example

TOPIC_PARTITIONS: set[TopicPartition] = {
    (topic, p) for topic in ("examples", "labels") for p in range(PARTITIONS)
}


def test_partitions_lost_between_two_polls_are_no_error(make_log: Open, start: Callable[..., Worker]) -> None:
    """Whatever is asked of them meanwhile: they are not drained, and a pause or a place is of no effect."""
    log: KafkaLog = make_log()
    log.append([example(0, b"1")])
    worker = start(log)
    worker.take(1)
    assert worker.session.drained(TOPIC_PARTITIONS) == TOPIC_PARTITIONS

    # What the client's own thread does once the coordinator does not know the member any more.
    worker.session._consumer._subscription.assign_from_subscribed([])

    assert worker.session.drained(TOPIC_PARTITIONS) == set()
    worker.session.pause(TOPIC_PARTITIONS)
    worker.session.resume(TOPIC_PARTITIONS)
    worker.session.seek(0, 0, 0)
