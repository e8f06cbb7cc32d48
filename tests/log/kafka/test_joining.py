"""A member that its group does not let in, on both clients of Kafka."""

import time

import pytest
from structlog.testing import capture_logs

from mistakebound.log import open_log
from mistakebound.log.kafka import joining
from mistakebound.log.kafka.joining import MORE_S, SAY_EVERY_S, Joining
from mistakebound.log.protocol import Unreachable
from mistakebound.settings import LogSettings, Settings
from tests.log.support.worker import PATIENCE_S, Worker


class Clock:
    """Monotonic, as a test moves it."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_it_is_said_every_half_minute_for_how_long_a_worker_has_been_joining() -> None:
    """Whoever looks at the log sees why nothing goes on, and when it ends."""
    clock = Clock()
    outside = Joining(300.0, clock)
    with capture_logs() as told:
        for _ in range(65):
            outside.look(True)
            clock.now_s += 1.0

    assert SAY_EVERY_S == 30.0
    assert [(each["event"], each["seconds"], each["limit_seconds"]) for each in told] == [
        ("joining", 30, 360),
        ("joining", 60, 360),
    ]


def test_a_join_may_take_as_long_as_a_member_may_work_and_a_minute_and_no_longer() -> None:
    """Until then the group waits for one that works; and each join counts by itself."""
    clock = Clock()
    outside = Joining(300.0, clock)
    for _ in range(3):
        outside.look(True)
        clock.now_s += 300.0 + MORE_S
        outside.look(True)
        outside.look(False)

    outside.look(True)
    clock.now_s += 300.0 + MORE_S + 1
    with pytest.raises(Unreachable, match=r"for 361 s, longer .*kafka\.max_poll_interval_ms"):
        outside.look(True)


@pytest.mark.kafka
@pytest.mark.parametrize("client", ["kafka", "kafka+confluent"])
def test_a_worker_that_is_not_let_in_ends_its_session_and_a_new_one_works(
    client: str, kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group waits for a member that sends heartbeats and does not poll, by its own limit for minutes."""
    monkeypatch.setattr(joining, "MORE_S", 1.0)
    place = LogSettings(url=f"{client}://{kafka_bootstrap}", prefix=prefix)
    short = {"session_timeout_ms": 6_000, "max_poll_interval_ms": 6_000}
    with open_log(Settings(log=place)) as log, open_log(Settings(log=place, kafka=short)) as other:
        log.create_topics(2, {})
        works = Worker(log, "one").start()
        waits = other.join("two")
        try:
            began_s = time.monotonic()
            with pytest.raises(Unreachable, match=r"the group has not let this worker in for [7-9] s"):
                while time.monotonic() < began_s + PATIENCE_S:
                    assert waits.poll(0.2).partitions == ()
        finally:
            waits.close(5)
            works.close()
        Worker(other, "two").start().close()
