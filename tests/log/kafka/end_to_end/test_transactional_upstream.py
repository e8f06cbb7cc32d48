"""Behind producers that write in transactions: once all committed records are worked off, nothing waits.

The last offsets of a partition are then a marker, or records that were aborted. Flink, Kafka Streams and Spring
write like this.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.records import Outgoing
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker import loop
from tests.commands.support.command_line import ok
from tests.log.support.upstream import Upstream
from tests.worker.support.working import Run, example, label, settings_for

PARTITIONS = 2
COUNT = 12
ENDS = {
    "a committed batch": ("commit",),
    "an aborted tail": ("commit", "abort"),
    "nothing but aborted": ("abort",),
    "both, again and again": ("commit", "abort", "commit", "abort", "abort"),
    "one record each": ("each",),
}


@pytest.fixture(params=["kafka", "kafka+confluent"])
def settings(request: pytest.FixtureRequest, kafka_bootstrap: str) -> Settings:
    return settings_for(f"{request.param}://{kafka_bootstrap}", labels={"max_delay": 1_000_000})


@pytest.fixture
def log(settings: Settings) -> Iterator[Log]:
    with open_log(settings) as log:
        log.create_topics(PARTITIONS, {})
        yield log


@pytest.fixture
def upstream(settings: Settings, kafka_bootstrap: str) -> Iterator[Upstream]:
    prefix = settings.log.prefix
    with Upstream(kafka_bootstrap, prefix, f"{prefix}upstream") as upstream:
        yield upstream


def batch(first: int = 0) -> list[Outgoing]:
    """Examples and their labels, on all partitions."""
    begun_ms = round(time.time() * 1000) - 60_000
    numbers = range(first, first + COUNT)
    return [example(n, {"a": n % 3 - 1.0}, begun_ms + n, PARTITIONS) for n in numbers] + [
        label(n, n % 2 == 0, begun_ms + 1_000 + n, PARTITIONS) for n in numbers
    ]


def write(upstream: Upstream, ends: Sequence[str]) -> int:
    """Returns how many examples were committed."""
    committed = 0
    for turn, end in enumerate(ends):
        records = batch(turn * COUNT)
        if end == "each":
            for one in records:
                upstream.commit([one])
        else:
            getattr(upstream, end)(records)
        committed += COUNT * (end != "abort")
    return committed


def quiet(log: Log, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A worker that measures its lag again and again while it finds nothing more to do."""
    monkeypatch.setattr(loop, "LAG_EVERY_S", 0.0)
    idle_rounds = 0

    def stopping(idle: bool) -> bool:
        nonlocal idle_rounds
        idle_rounds += idle
        return idle_rounds > 3

    return Run(log, settings, stopping=stopping)


def status(settings: Settings) -> Any:
    flags = ("--set", f"log.prefix={settings.log.prefix}", "--set", "learner.kind=perceptron")
    return json.loads(ok("status", "--json", *flags, log=settings.log.url).stdout)


NO_LAG = {str(p): {"examples": 0, "labels": 0} for p in range(PARTITIONS)}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_nothing_waits_once_all_committed_records_are_worked_off(
    log: Log, settings: Settings, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, ends: Sequence[str]
) -> None:
    """No lag in health, metrics and `status`, live and after a restart, when the committed offsets lie before the
    markers."""
    committed = write(upstream, ends)

    for _ in ("live", "restarted"):
        run = quiet(log, settings, monkeypatch)

        vitals = run.heartbeat.vitals()
        assert {p: each.lag for p, each in vitals.partitions.items()} == dict.fromkeys(range(PARTITIONS), 0)
        page = run.metrics.page()[0].decode().splitlines()
        shown = [line for line in page if line.startswith("mistakebound_consumer_lag_records{")]
        assert [float(line.split()[-1]) for line in shown] == [0.0] * 2 * PARTITIONS
        told = status(settings)
        assert told["lag"] == NO_LAG
        assert told["examples"] == committed


def test_status_counts_what_was_committed_and_not_worked_off(
    log: Log, settings: Settings, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first record that is there to read, however many markers and aborted records lie before it."""
    write(upstream, ("commit", "abort"))
    quiet(log, settings, monkeypatch)
    begun_ms = round(time.time() * 1000)
    upstream.commit([example(900 * PARTITIONS, {"a": 1.0}, begun_ms, PARTITIONS)])

    assert status(settings)["lag"] == {**NO_LAG, "0": {"examples": 2, "labels": 0}}


def test_an_open_transaction_upstream_holds_up_no_command(
    log: Log, settings: Settings, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is open for as long as its producer's checkpoint takes, which may be minutes: what is committed below it is
    all that there is to read."""
    committed = write(upstream, ("commit", "abort"))
    file = tmp_path / "day.jsonl"
    flags = ("--set", f"log.prefix={settings.log.prefix}", "--set", "learner.kind=perceptron")
    with upstream.leave_open(batch(1_000)):
        quiet(log, settings, monkeypatch)
        assert status(settings)["lag"] == NO_LAG
        ok("record", str(file), "--topics", "examples,labels", *flags, log=settings.log.url)
        ok("topics", "check", "--set", "labels.max_delay=P1D", *flags, log=settings.log.url)
        audit = json.loads(
            ok("audit", "--json", *flags, "--set", "checkpoint.url=", log=settings.log.url).stdout
        )
    assert len(file.read_text().splitlines()) == 1 + 2 * committed
    assert audit["differences"] == {}


def test_a_long_aborted_tail_does_not_hide_how_keys_are_placed(
    log: Log, settings: Settings, upstream: Upstream
) -> None:
    """`topics check` looks at the newest committed records, wherever they lie."""
    write(upstream, ("commit",))
    upstream.abort([each for first in range(0, 1_000, COUNT) for each in batch(10_000 + first)])
    flags = ("--set", f"log.prefix={settings.log.prefix}", "--set", "labels.max_delay=P1D")

    found = json.loads(ok("topics", "check", "--json", *flags, log=settings.log.url).stdout)

    placed = next(each for each in found if each["rule"] == "keys")
    assert placed["found"].count(f"of {COUNT})") == 2, placed
