"""Records into the log and out of it, by hand: `send`, `tail`, `record`, on the sqlite log."""

import json
import os
import signal
from pathlib import Path

import pytest

from mistakebound.core.records import Outgoing
from mistakebound.core.replay.recording import begin
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.commands.support.command_line import LOG, ok, run, start

EXAMPLES = b'{"id":"a","features":{"x":1}}\n{"id":7,"features":{"x":2}}\n'


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("MISTAKEBOUND_"):
            monkeypatch.delenv(name)


def test_messages_are_sent_under_their_id() -> None:
    """Integers as their decimal string, so that an example and its label share a partition."""
    ok("topics", "create", "--partitions", "2")
    assert "sent 2 records" in ok("send", "examples", "-", stdin=EXAMPLES).stderr
    lines = ok("tail", "examples", "--from", "beginning", "-c", "2", "--json").stdout.splitlines()
    assert {json.loads(line)["key"] for line in lines} == {"a", "7"}


def test_the_id_is_found_where_messages_id_points() -> None:
    """Existing messages need no change."""
    ok("topics", "create")
    ok("send", "examples", "-", "--set", "messages.id=/after/pk~1id", stdin=b'{"after":{"pk/id":"z"}}\n')
    line = ok("tail", "examples", "--from", "beginning", "-c", "1", "--json").stdout
    assert json.loads(line)["key"] == "z"


@pytest.mark.parametrize(
    "line",
    [b"not json\n", b"{}\n", b'{"id":null}\n', b'{"id":true}\n', b'{"id":1.5}\n', b"[1]\n", b'{"id":""}\n'],
)
def test_a_line_without_an_id_stops_sending_by_number(line: bytes) -> None:
    """Exit code 2; what came before it is sent, as the message says."""
    ok("topics", "create")
    result = run("send", "examples", "-", stdin=EXAMPLES + line)
    assert result.exit_code == 2
    assert "sent 2 records" in result.stderr
    assert "line 3: " in result.stderr


def test_only_inputs_can_be_sent() -> None:
    """The worker's own topics are the worker's own."""
    ok("topics", "create")
    assert run("send", "updates", "-", stdin=EXAMPLES).exit_code == 2


def test_a_missing_file_is_a_usage_error() -> None:
    """Named, without a traceback."""
    result = run("send", "examples", "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl" in result.stderr


def test_tail_prints_messages_as_json_lines() -> None:
    """The value alone; what is not JSON in the recording's form, which escapes it."""
    ok("topics", "create")
    with open_log(Settings(log=LogSettings(url=LOG))) as log:
        log.append([Outgoing("labels", 0, b"k", b'{"id":1}'), Outgoing("labels", 0, b"k", b"\x1b[2J")])
    first, second = ok("tail", "labels", "--from", "beginning", "-c", "2").stdout.splitlines()
    assert first == '{"id":1}'
    assert json.loads(second)["payload"] == "\x1b[2J"
    assert "\x1b" not in second


@pytest.mark.long
def test_tail_ends_cleanly_by_ctrl_c() -> None:
    """Exit code 0: it is how the command is meant to end."""
    ok("topics", "create")
    ok("send", "examples", "-", stdin=EXAMPLES)
    process = start("tail", "examples", "--from", "beginning", "--log", LOG)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == EXAMPLES.splitlines(keepends=True)[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()


@pytest.fixture
def rich_log() -> str:
    """A log whose inputs hold everything a record can: bytes, nulls, headers, odd times."""
    ok("topics", "create", "--partitions", "2")
    with open_log(Settings(log=LogSettings(url=LOG))) as log:
        log.append(
            [
                Outgoing(
                    "examples", 0, b"a", b'{"id":"a"}', (("h", b"1"), ("h", None), ("b", b"\xff")), 1_000
                ),
                Outgoing("examples", 1, b"\xff\x00", b"\x00\xfe", (), 3_000),
                Outgoing("examples", 1, None, None, (), 2_000),
                Outgoing("labels", 1, b"c", b"", (), 2_500),
                Outgoing("labels", 0, b"a", '{"id":"ä"}'.encode(), (), 1_000),
            ]
        )
    return LOG


def _recorded(log: str) -> bytes:
    return ok("record", "-", log=log).stdout_bytes


def test_recording_twice_gives_the_same_bytes(rich_log: str) -> None:
    """No clock and no host is in a recording."""
    assert ok("record", "one.jsonl", log=rich_log).stdout == ""
    assert Path("one.jsonl").read_bytes() == _recorded(rich_log)


def test_a_recording_is_in_record_time_order(rich_log: str) -> None:
    """Examples before labels at equal times; a time that goes back does not break offset order."""
    _, records = begin(_recorded(rich_log).splitlines(keepends=True))
    assert [(one.topic, one.partition, one.offset) for one in records] == [
        ("examples", 0, 0),
        ("labels", 0, 0),
        ("labels", 1, 0),
        ("examples", 1, 0),
        ("examples", 1, 1),
    ]


def test_sending_a_recordings_inputs_keeps_them(rich_log: str) -> None:
    """Keys, values, headers, record times and partitions: the copy's recording is the same bytes."""
    ok("record", "inputs.jsonl", "--topics", "examples,labels", log=rich_log)
    ok("topics", "create", "--partitions", "2", log="sqlite:copy.db")
    ok("send", "inputs", "inputs.jsonl", log="sqlite:copy.db")
    assert _recorded("sqlite:copy.db") == Path("inputs.jsonl").read_bytes()


def test_one_topic_of_a_recording_can_be_sent(rich_log: str) -> None:
    """The others are left out."""
    ok("record", "all.jsonl", log=rich_log)
    ok("topics", "create", "--partitions", "2", log="sqlite:copy.db")
    assert "sent 2 records" in ok("send", "labels", "all.jsonl", log="sqlite:copy.db").stderr


def test_a_recording_of_other_partitions_goes_by_key_with_a_warning(rich_log: str) -> None:
    """The partitions of the file mean nothing there."""
    ok("record", "all.jsonl", log=rich_log)
    ok("topics", "create", "--partitions", "3", log="sqlite:copy.db")
    assert (
        "warning: the recording has 2 partitions"
        in ok("send", "inputs", "all.jsonl", log="sqlite:copy.db").stderr
    )


def test_a_damaged_recording_stops_sending_by_line(rich_log: str) -> None:
    """Exit code 2; what came before it is sent."""
    lines = _recorded(rich_log).splitlines(keepends=True)
    Path("damaged.jsonl").write_bytes(b"".join([*lines[:3], b"{}\n"]))
    ok("topics", "create", "--partitions", "2", log="sqlite:copy.db")
    result = run("send", "inputs", "damaged.jsonl", log="sqlite:copy.db")
    assert result.exit_code == 2
    assert "sent 2 records" in result.stderr
    assert "line 4" in result.stderr


def test_a_recording_that_fails_leaves_no_file() -> None:
    """A file is whole or not there."""
    Path("old.jsonl").write_text("kept")
    assert run("record", "old.jsonl").exit_code == 5
    assert Path("old.jsonl").read_text() == "kept"
    assert [path.name for path in Path().iterdir()] == ["old.jsonl"]


def test_a_recording_into_a_missing_folder_is_a_usage_error(rich_log: str) -> None:
    """Named, without a traceback."""
    result = run("record", "missing/one.jsonl", log=rich_log)
    assert result.exit_code == 2
    assert "missing/one.jsonl cannot be written" in result.stderr
