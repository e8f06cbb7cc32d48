"""`record`, and `send` of what it recorded: the same bytes, in record-time order, as they were."""

from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands.log_ranges import read_merged
from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.core.replay.plan import carry_out, planned
from mistakebound.core.replay.recorded import Recorded
from mistakebound.core.replay.recording import begin
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.commands.support.command_line import LOG, ok, run
from tests.support.tries import long
from tests.worker.support.working import Run, opened, settings_for, stream


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


def test_a_recording_of_other_partitions_says_where_it_goes(rich_log: str) -> None:
    """What has no id, and so no place of its own, goes along."""
    ok("record", "all.jsonl", log=rich_log)
    ok("topics", "create", "--partitions", "3", log="sqlite:copy.db")
    told = ok("send", "inputs", "all.jsonl", "--partitioner", "crc32", log="sqlite:copy.db").stderr
    assert (
        told
        == "sending to examples and labels, 3 partitions: by crc32, as --partitioner says\nsent 5 records\n"
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


class _Busy:
    """A log on which a worker works off more inputs when an end is asked for the `at`-th time."""

    def __init__(self, log: Any, settings: Settings, at: int) -> None:
        self._log, self._settings, self._left = log, settings, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def high_watermark(self, topic: Any, partition: int) -> int:
        if self._left == 0:
            self._log.append(stream(20, partitions=2, seed=9, first=1_000))
            Run(self._log, self._settings)
        self._left -= 1
        return int(self._log.high_watermark(topic, partition))


@pytest.mark.parametrize("at", [1, 3, 4, 7, *long(0, 2, 5, 6, 8, 9, 10, 11)])
def test_a_recording_made_beside_a_working_worker_can_be_replayed(at: int, quiet: None) -> None:
    """Whichever topic's end it goes beyond: what `outcomes` say was consumed and learned from is in the recording."""
    settings = settings_for(batch={"max_records": 4}, learner={"kind": "averaged-perceptron"})
    with opened(settings, 2) as log:
        log.append(stream(20, partitions=2))
        Run(log, settings)
        busy: Any = _Busy(log, settings, at)
        recorded = Recorded(list(read_merged(busy, TOPICS)), 2)

    plan = planned(recorded, Settings())
    state = carry_out(recorded, plan)

    assert plan.afresh is None
    assert state.model.updates == [ledger.tallies.epoch.updates for ledger in state.ledgers.values()]
