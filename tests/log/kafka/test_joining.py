"""A member that its group does not let in, on both clients of Kafka."""

import subprocess
import sys
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


STOPPED = """
import os, signal, subprocess, sys, time
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
url, prefix, program = sys.argv[1:]
short = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 300}
with open_log(Settings(log=LogSettings(url=url, prefix=prefix), kafka=short)) as log:
    session = log.join("one")
    while len(session.poll(0.2).partitions) < 2:
        pass
    other = subprocess.Popen([sys.executable, "-c", program, url, prefix], stdout=subprocess.PIPE)
    other.stdout.readline()
    time.sleep(0.5)  # by now the client has been told, and we have not polled it
    waking = f"import os, time; time.sleep(4.5); os.kill({os.getpid()}, {int(signal.SIGCONT)})"
    subprocess.Popen([sys.executable, "-c", waking])
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.2)
    session.close(5)
    other.kill()
    other.wait()
"""
JOINS = """
import sys, time
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
url, prefix = sys.argv[1:]
end = time.monotonic() + 30
with open_log(Settings(log=LogSettings(url=url, prefix=prefix))) as log:
    session = log.join("two")
    print("joins", flush=True)
    while time.monotonic() < end:
        session.poll(0.1)
"""
AT_ONCE = 6
"""One in eight stood still."""


@pytest.mark.kafka
@pytest.mark.parametrize("client", ["kafka", "kafka+confluent"])
def test_a_member_that_was_stopped_amid_a_rebalance_can_leave(
    client: str, kafka_bootstrap: str, prefix: str
) -> None:
    """Its group has given it up meanwhile, while its client waits to tell it of a rebalance that has long passed."""
    url = f"{client}://{kafka_bootstrap}"
    stopped = []
    for number in range(AT_ONCE):
        place = LogSettings(url=url, prefix=f"{prefix}{number}.")
        with open_log(Settings(log=place)) as log:
            log.create_topics(2, {})
        stopped.append(subprocess.Popen([sys.executable, "-c", STOPPED, url, place.prefix, JOINS]))
    try:
        assert [each.wait(PATIENCE_S) for each in stopped] == [0] * AT_ONCE
    finally:
        for each in stopped:
            each.kill()


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
