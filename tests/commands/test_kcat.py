"""What kcat printed of the topics, replayed and sent again."""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.records import INPUTS, Record
from mistakebound.core.replay.recording import decode, encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run

PREFIX = ("--set", "log.prefix=shop.", "--set", "topics.labels=chargebacks")
NAMES = {"examples": "shop.examples", "labels": "chargebacks"}
ROWS = [Row(f"i{n}", {"x": float(n % 5) - 2, "y": 1.0}, n % 3 == 0) for n in range(40)]
RECORDS = [
    record._replace(headers=(("trace", b"1"),)) if n % 7 == 0 else record
    for n, record in enumerate(as_stream(ROWS, Settings(), 3, 4))
]


def printed(record: Record) -> bytes:
    """As kcat prints it."""
    fields: dict[str, Any] = {
        "topic": NAMES[record.topic],
        "partition": record.partition,
        "offset": record.offset,
        "tstype": "create",
        "ts": record.timestamp_ms,
        "broker": 1,
    }
    if record.headers:
        fields["headers"] = [
            part for name, value in record.headers for part in (name, (value or b"").decode())
        ]
    key, payload = ((found or b"").decode() for found in (record.key, record.value))
    return json.dumps({**fields, "key": key, "payload": payload}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture(autouse=True)
def _files() -> None:
    """The same records as a recording, and as kcat prints topic after topic."""
    Path("day.jsonl").write_bytes(encode_header(3) + b"".join(map(encode, RECORDS)))
    by_topic = sorted(RECORDS, key=lambda record: record.topic)
    Path("kcat.jsonl").write_bytes(b"".join(map(printed, by_topic)))


@pytest.mark.parametrize("form", [(), ("--from", "recording")])
def test_it_is_replayed_as_a_recording_of_the_same_records(form: tuple[str, ...]) -> None:
    """To the byte: partitions are found, and record time orders what the file has topic by topic."""
    reports = [
        ok("replay", name, "-q", "--json", *PREFIX, *form, log=None).stdout
        for name in ("day.jsonl", "kcat.jsonl")
    ]
    assert reports[0] == reports[1]
    assert json.loads(reports[1])["labelled"] == 40


@pytest.mark.parametrize("stdin", [False, True])
@pytest.mark.parametrize("topic", ["inputs", *INPUTS])
def test_it_is_sent_with_keys_headers_times_and_partitions(topic: str, stdin: bool) -> None:
    """As a recording is; of one topic, or both."""
    ok("topics", "create", "--partitions", "3", *PREFIX)
    told = (
        ok("send", topic, "-", *PREFIX, stdin=Path("kcat.jsonl").read_bytes())
        if stdin
        else ok("send", topic, "kcat.jsonl", *PREFIX)
    )
    ok("record", "again.jsonl", *PREFIX)
    wanted = [record for record in RECORDS if topic in (record.topic, "inputs")]

    assert f"sent {len(wanted)} records" in told.stderr
    with Path("again.jsonl").open("rb") as lines:
        assert set(decode(lines)) == set(wanted)


def test_a_topic_of_other_names_is_refused() -> None:
    """Nothing is guessed, and nothing sent."""
    ok("topics", "create")
    for told in (run("replay", "kcat.jsonl", log=None), run("send", "inputs", "kcat.jsonl")):
        assert told.exit_code == 2
        assert (
            "line 1: topic = 'shop.examples' is none" in told.stderr or "topic = 'chargebacks'" in told.stderr
        )
        assert "log.prefix" in told.stderr


def test_its_judged_examples_are_seeds_too() -> None:
    """As those of a recording."""
    for url, name in (("sqlite:one.db", "day.jsonl"), ("sqlite:two.db", "kcat.jsonl")):
        ok("topics", "create", *PREFIX, log=url)
        ok("seed", name, *PREFIX, "--set", "labels.max_delay=60", log=url)
    digests = [
        json.loads(
            ok("status", "--model", "--json", *PREFIX, "--set", "labels.max_delay=60", log=url).stdout
        )["model"]
        for url in ("sqlite:one.db", "sqlite:two.db")
    ]
    assert digests[0] == digests[1]
