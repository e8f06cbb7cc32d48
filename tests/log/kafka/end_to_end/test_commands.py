"""The command line on a real broker: topics as the guarantees need them, records there and back."""

import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from mistakebound.core.records import Outgoing, Topic
from mistakebound.core.replay.recording import begin
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.commands.support.command_line import ok, run, start


@pytest.fixture
def here(kafka_bootstrap: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An empty folder, and settings for topics of the test's own."""
    monkeypatch.chdir(tmp_path)
    return Settings(log=LogSettings(url=f"kafka://{kafka_bootstrap}", prefix=prefix))


def _flags(settings: Settings) -> Sequence[str]:
    return ("--log", settings.log.url or "", "--set", f"log.prefix={settings.log.prefix}")


def _alter(settings: Settings, topic: Topic, name: str, value: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=(settings.log.url or "").removeprefix("kafka://"))
    try:
        place = ConfigResource(ConfigResourceType.TOPIC, settings.topic_name(topic), configs={name: value})
        admin.alter_configs([place])
    finally:
        admin.close()
    with open_log(settings) as log:
        deadline = time.monotonic() + 30
        while True:  # the broker hears of the change a little later than the controller
            described = log.describe()[topic]
            if described is not None and described.config[name] == value:
                return
            assert time.monotonic() < deadline, f"{name} = {value} never came"
            time.sleep(0.05)


def test_created_topics_pass_the_check(here: Settings) -> None:
    """With and without a known delay of labels."""
    ok("topics", "create", "--set", "labels.max_delay=P7D", *_flags(here), log=None)
    for more in ((), ("--set", "labels.max_delay=P7D")):
        checks = json.loads(ok("topics", "check", "--json", *more, *_flags(here), log=None).stdout)
        assert {check["found"] for check in checks if check["rule"] == "partitions"} == {"4"}
        assert {check["verdict"] for check in checks} - {"warning"} == {"ok"}, checks


def test_a_compacted_topic_fails_the_check(here: Settings) -> None:
    """Exit code 3, with the command that mends it."""
    ok("topics", "create", *_flags(here), log=None)
    _alter(here, "outcomes", "cleanup.policy", "compact")
    result = run("topics", "check", *_flags(here), log=None)
    assert result.exit_code == 3
    assert "--add-config cleanup.policy=delete" in result.stderr


def test_a_recording_is_the_same_twice_and_on_the_way_back(here: Settings) -> None:
    """Keys, values, headers and record times survive Kafka to file to Kafka."""
    now = time.time_ns() // 1_000_000
    ok("topics", "create", "--partitions", "2", *_flags(here), log=None)
    with open_log(here) as log:
        for number in range(6):
            key, value = b"tx-%d" % number, b"\xff%d" % number
            log.append([Outgoing("examples", number % 2, key, value, (("h", b""), ("h", b"1")), now)])
            log.append([Outgoing("labels", number % 2, key, b'{"id":"x"}', (), now + number)])
    for name in ("one.jsonl", "two.jsonl"):
        ok("record", name, *_flags(here), log=None)
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()
    copy = ("--log", "sqlite:copy.db")
    ok("topics", "create", "--partitions", "2", *copy, log=None)
    ok("send", "inputs", "one.jsonl", *copy, log=None)
    ok("record", "copy.jsonl", *copy, log=None)
    header, records = begin(Path("copy.jsonl").read_bytes().splitlines(keepends=True))
    assert header.partitions == 2
    assert list(records) == list(begin(Path("one.jsonl").read_bytes().splitlines(keepends=True))[1])


@pytest.mark.long
def test_nobody_at_the_address_is_exit_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, without a traceback, in bounded time."""
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = start("topics", "check", "--log", f"kafka://{address}")
        _, said = process.communicate(timeout=120)
    assert process.returncode == 4
    assert address in said.decode()
    assert b"Traceback" not in said
