"""Logs: one event a line on stderr, machine-readable or human, counted by level."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from mistakebound.worker import logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is one for the process: put it back as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    logging.getLogger("mistakebound").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def test_json_logs_have_event_level_and_utc_time() -> None:
    """Each line is one JSON object that a log collector understands."""
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    structlog.get_logger("mistakebound.worker").warning("checkpoint_rejected", path="/x", size=3)
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", event.pop("timestamp"))
    assert event == {"event": "checkpoint_rejected", "level": "warning", "path": "/x", "size": 3}


def test_console_logs_are_plain_text_off_a_terminal() -> None:
    """No colour codes end up in files."""
    stream = io.StringIO()
    logs.configure("console", stream=stream)
    structlog.get_logger("mistakebound.worker").info("started", partitions=4)
    assert re.search(r"\[info *\] started +.*partitions=4", stream.getvalue())
    assert "\x1b" not in stream.getvalue()


def test_the_default_stream_is_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """stdout is for data."""
    logs.configure("json")
    structlog.get_logger("mistakebound.worker").info("started")
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["event"] == "started"


def test_messages_are_counted_by_level_when_written() -> None:
    """The count is that of the lines: what is below the level is neither written nor counted."""
    counted: list[str] = []
    stream = io.StringIO()
    logs.configure("json", stream=stream, count=counted.append)
    log = structlog.get_logger("mistakebound.worker")
    log.debug("unseen")
    log.info("one")
    log.error("two")
    logging.getLogger("kafka.client").warning("three")
    assert counted == ["info", "error", "warning"]
    assert len(stream.getvalue().splitlines()) == 3


def test_the_level_can_be_lowered() -> None:
    """Debugging shows the service's own details, not the libraries'."""
    stream = io.StringIO()
    logs.configure("json", stream=stream, level="debug")
    structlog.get_logger("mistakebound.worker").debug("seen")
    logging.getLogger("kafka.client").info("unseen")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["seen"]


def test_the_kafka_clients_warnings_go_the_same_way() -> None:
    """Its info chatter is dropped; its warnings are lines like ours, with the logger's name."""
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    kafka = logging.getLogger("kafka.coordinator")
    kafka.info("joining group %s", "g")
    kafka.warning("heartbeat failed for %s", "g")
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("heartbeat failed for g", "warning")
    assert event["logger"] == "kafka.coordinator"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_exception_is_logged_with_its_traceback(log_format: logs.LogFormat) -> None:
    """A bug's report says where it happened."""
    stream = io.StringIO()
    logs.configure(log_format, stream=stream)
    try:
        _ = {}["missing"]
    except KeyError:
        structlog.get_logger("mistakebound.worker").exception("crashed")
    text = stream.getvalue()
    assert "KeyError" in text
    assert "test_logs.py" in text
    if log_format == "json":
        assert len(text.splitlines()) == 1


def test_what_the_client_says_of_each_attempt_is_not_logged() -> None:
    """A fencing that is meant is no error, a group's coordinator that moved no warning; what else happens to the group is."""
    stream = io.StringIO()
    for _ in range(2):
        logs.configure("json", stream=stream)
    for name in ("kafka.producer.sender", "kafka.producer.transaction_manager", "kafka.net.manager"):
        logging.getLogger(name).error("Fatal error: [Error 90] ProducerFencedError")
    coordinator = logging.getLogger("kafka.coordinator")
    coordinator.warning("Marking the coordinator dead (node %s): %s.", "1", "[Error 16] NotCoordinatorError")
    coordinator.warning("Heartbeat session expired")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == [
        "Heartbeat session expired"
    ]


def test_configuring_again_replaces_the_earlier_set_up() -> None:
    """A command may log before it has metrics; no line is written twice after."""
    first, second = io.StringIO(), io.StringIO()
    logs.configure("json", stream=first)
    log = structlog.get_logger("mistakebound.worker")
    log.info("one")
    logs.configure("json", stream=second)
    log.info("two")
    assert len(first.getvalue().splitlines()) == 1
    assert [json.loads(line)["event"] for line in second.getvalue().splitlines()] == ["two"]


def test_values_that_are_not_json_are_logged_as_text() -> None:
    """A log call never fails on what it is given."""
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    structlog.get_logger("mistakebound.worker").info("odd", value={1, 2}, raw=b"x")
    assert json.loads(stream.getvalue())["value"] == "{1, 2}"
