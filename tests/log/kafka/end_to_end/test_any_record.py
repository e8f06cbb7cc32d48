"""Records as anybody may write them, past every client's own checks: none stops a worker, whichever client it uses."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.records import TOPICS, Headers, Outgoing, Record, Topic
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.log.support.upstream import Raw, Upstream
from tests.worker.support.working import Recount, Run, example, label, settings_for

ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}


@pytest.fixture(params=["kafka", "kafka+confluent"])
def settings(request: pytest.FixtureRequest, kafka_bootstrap: str) -> Settings:
    return settings_for(f"{request.param}://{kafka_bootstrap}", labels={"max_delay": 1_000_000})


@pytest.fixture
def log(settings: Settings) -> Iterator[Log]:
    """Its topics take records of any time."""
    with open_log(settings) as log:
        log.create_topics(1, dict.fromkeys(TOPICS, ANY_TIME))
        yield log


@pytest.fixture
def upstream(settings: Settings, kafka_bootstrap: str) -> Iterator[Upstream]:
    with Upstream(kafka_bootstrap, settings.log.prefix) as upstream:
        yield upstream


def now_ms() -> int:
    return round(time.time() * 1000) - 60_000


def dead(log: Log) -> list[tuple[Record, dict[str, Any]]]:
    return [(each, dict(each.headers)) for each in log.read("dead-letters", 0, 0)]


def flags(settings: Settings) -> tuple[str, ...]:
    return ("--set", f"log.prefix={settings.log.prefix}", "--set", "learner.kind=perceptron")


def audit(settings: Settings, *recording: str) -> Any:
    more = recording or ("--set", "checkpoint.url=")
    log = None if recording else settings.log.url
    return json.loads(ok("audit", *more, "--json", *flags(settings), log=log).stdout)


BAD: Headers = (
    ("first", b"1"),
    (Raw(b"caf\xe9"), b"content"),
    ("first", None),
    (Raw(b"\xff\0\xfe"), None),
)


def test_a_header_whose_name_is_not_utf8_costs_its_record_alone(
    log: Log, settings: Settings, upstream: Upstream, tmp_path: Path
) -> None:
    """It becomes a dead letter with its other headers, key and value; the detail names what was dropped. The stream
    goes on, and everything can be derived again, from a recording too."""
    t = now_ms()
    bad_example, bad_label = example(1, {"a": 2.0}, t + 1), label(0, True, t + 3)
    upstream.send(
        [
            example(0, {"a": 1.0}, t)._replace(headers=BAD[:1]),
            bad_example._replace(headers=BAD),
            example(2, {"a": 3.0}, t + 2),
            bad_label._replace(headers=BAD[1:2]),
            label(2, True, t + 4),
        ]
    )

    run = Run(log, settings)

    letters = dead(log)
    assert [(each.key, each.value) for each, _ in letters] == [
        (sent.key, sent.value) for sent in (bad_example, bad_label)
    ]
    for _, headers in letters:
        assert headers["mistakebound.reason"] == b"bad-header"
        assert b"caf\\xe9" in headers["mistakebound.detail"]
    assert letters[0][0].headers[-2:] == (BAD[0], BAD[2])
    assert b"xff" in letters[0][1]["mistakebound.detail"]
    assert [name for name, _ in letters[1][0].headers if not name.startswith("mistakebound.")] == []
    for stream in ("examples", "labels"):
        line = f'mistakebound_records_rejected_total{{reason="bad-header",stream="{stream}"}}'
        assert run.metric(line) == 1
    recount = Recount(log, settings)
    assert [record_id for record_id, _ in recount.predicted] == ["i0", "i2"]
    assert audit(settings)["differences"] == {}
    file = str(tmp_path / "day.jsonl")
    ok("record", file, *flags(settings), log=settings.log.url)
    assert audit(settings, "--recording", file)["differences"] == {}


def test_a_whole_stream_of_such_headers_is_worked_off(
    log: Log, settings: Settings, upstream: Upstream
) -> None:
    """They seldom come alone: a producer writes them on every record."""
    t = now_ms()
    upstream.send(example(n, {"a": 1.0}, t + n)._replace(headers=BAD) for n in range(3_000))
    upstream.send([example(3_000, {"a": 1.0}, t + 3_000)])

    Run(log, settings)

    assert len(dead(log)) == 3_000
    assert Recount(log, settings).predicted == [("i3000", False)]


def test_a_restarted_worker_takes_them_as_well(log: Log, settings: Settings, upstream: Upstream) -> None:
    """It starts at one, amid a batch of them."""
    t = now_ms()
    upstream.send([example(0, {"a": 1.0}, t)])
    Run(log, settings)
    upstream.send([example(n, {"a": 1.0}, t + n)._replace(headers=BAD) for n in (1, 2, 3)])
    Run(log, settings)
    upstream.send([example(4, {"a": 1.0}, t + 4)])
    Run(log, settings)

    assert len(dead(log)) == 3
    assert [record_id for record_id, _ in Recount(log, settings).predicted] == ["i0", "i4"]


TOO_LARGE = "one that fits its topic and no prediction"
HEADERS: dict[str, Headers] = {
    "a name twice, and again": (("n", b"1"), ("n", b"2"), ("n", None)),
    "an empty name": (("", b"1"), ("", None), ("", b"")),
    "null contents": (("a", None), ("b", None)),
    "names of ours": (("mistakebound.reason", b"mine"), ("mistakebound.offset", None)),
    "names in all planes": (("é\u2028\U0001f600\ufeff", b"\xff\xfe"),),
    "5,000 headers": tuple((f"h{n}", b"%d" % n) for n in range(5_000)),
    "100,000 headers": (("", None),) * 100_000,
    "one of half a megabyte": (("n", b"x" * 500_000),),
    "a name of half a megabyte": (("n" * 500_000, b""),),
    TOO_LARGE: (("n", b"x" * 1_047_500),),
}


def test_any_headers_are_carried_or_their_record_is_set_aside(
    log: Log, settings: Settings, upstream: Upstream
) -> None:
    """Where a prediction could not hold them, the record is oversize."""
    t = now_ms()
    for number, headers in enumerate(HEADERS.values()):
        upstream.send([example(number, {"a": 1.0}, t + number)._replace(headers=headers)])

    Run(log, settings)

    came: dict[bytes | None, Any] = {each.key: each.headers for each in log.read("predictions", 0, 0)}
    for letter, headers in dead(log):
        assert headers["mistakebound.reason"] == b"oversize"
        came[letter.key] = "oversize"
    assert [came[b"i%d" % number] for number in range(len(HEADERS))] == [
        "oversize" if name == TOO_LARGE else headers for name, headers in HEADERS.items()
    ]
    assert audit(settings)["differences"] == {}


TIMES = (-1, -2, -86_400_000, -(2**62), -(2**63), 0, 1, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1)


def test_any_time_is_taken(log: Log, settings: Settings, upstream: Upstream) -> None:
    """Before 1970, at its beginning, and for as long as 64 bits last: each record has one outcome."""
    for number, stamp in enumerate(TIMES):
        upstream.send([_example(number)._replace(timestamp_ms=stamp)])
        upstream.send([_label(number)._replace(timestamp_ms=stamp)])

    for _ in range(2):
        Run(log, settings)

    tallies = Recount(log, settings).tallies[-1].life
    assert tallies.examples["consumed"] == tallies.labels["consumed"] == len(TIMES)
    assert audit(settings)["differences"] == {}


def test_a_batch_of_times_far_apart_is_read_by_each_client_alike(
    log: Log, settings: Settings, upstream: Upstream
) -> None:
    """kafka-python writes a difference that takes more than 64 bits as another time: the log's, whoever reads it."""
    upstream.send(_example(number)._replace(timestamp_ms=stamp) for number, stamp in enumerate(TIMES))
    upstream.send(_example(99)._replace(timestamp_ms=stamp) for stamp in reversed(TIMES))

    read = []
    for client in ("kafka", "kafka+confluent"):
        url = f"{client}://{settings.log.url.partition('://')[2]}"
        with open_log(
            settings.model_copy(update={"log": settings.log.model_copy(update={"url": url})})
        ) as its:
            read.append([(each.offset, each.timestamp_ms) for each in its.read("examples", 0, 0)])

    assert read[0] == read[1]
    assert len(read[0]) == 2 * len(TIMES)


KEYS_AND_VALUES: tuple[tuple[Topic, bytes | None, bytes | None], ...] = tuple(
    (topic, key, value)
    for topic in ("examples", "labels")
    for key in (None, b"", b"\xff\xfe", b"k" * 100_000)
    for value in (None, b"", b"\0", b'{"features":{"a":1},"label":true}', b"{" * 1_000)
)


def test_any_key_and_value_are_taken(log: Log, settings: Settings, upstream: Upstream) -> None:
    """A key without text, none at all, a record without anything in it."""
    t = now_ms()
    upstream.send(
        Outgoing(topic, 0, key, value, (), t + n) for n, (topic, key, value) in enumerate(KEYS_AND_VALUES)
    )

    Run(log, settings)

    tallies = Recount(log, settings).tallies[-1].life
    consumed = tallies.examples["consumed"] + tallies.labels["consumed"]
    assert consumed == len(KEYS_AND_VALUES)
    assert audit(settings)["differences"] == {}


def _example(number: int) -> Outgoing:
    return example(number, {"a": 1.0}, 0)


def _label(number: int) -> Outgoing:
    return label(number, True, 0)
