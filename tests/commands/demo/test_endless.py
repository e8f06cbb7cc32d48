"""The demo's stream without an end: goes on where it was, and says nothing twice."""

import itertools
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands.demo.endless import LATE_S, produce, repeat
from mistakebound.commands.demo.pages import flip, read_pages
from mistakebound.core.records import INPUTS, Outgoing
from mistakebound.core.replay.replay import Row
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import opened, settings_for

PARTITIONS = 3
RATE = 1_000.0
OUTSTANDING = round(LATE_S * RATE)


class StopsAfter:
    """A log that lets so many records in and then tells the producer to stop."""

    def __init__(self, log: Log, records: int, stop: threading.Event) -> None:
        self._log, self._left, self._stop = log, records, stop
        self.partitions = log.partitions
        self.high_watermark = log.high_watermark

    def append(self, records: list[Outgoing]) -> int:
        self._left -= len(records)
        if self._left <= 0:
            self._stop.set()
        return self._log.append(records)


def send(log: Log, settings: Settings, records: int, stream: Iterable[Row] | None = None, **how: Any) -> None:
    """Let the producer send so many records, without resting between them."""
    stop = threading.Event()
    stop.wait = lambda timeout=None: stop.is_set()  # type: ignore[method-assign]
    stream = repeat(read_pages()) if stream is None else stream
    produce(StopsAfter(log, records, stop), settings, stream, RATE, stop, **how)  # type: ignore[arg-type]


def values(log: Log, topic: str) -> list[Any]:
    return [json.loads(record.value or b"") for p in range(PARTITIONS) for record in log.read(topic, p, 0)]


def ids(log: Log, topic: str) -> list[str]:
    return sorted(each["id"] for each in values(log, topic))


def test_ids_of_every_lap_are_new() -> None:
    """A worker predicts no id twice, so a second lap under the first one's ids would do nothing."""
    some = [row.id for row in itertools.islice(repeat(read_pages()), 3 * len(read_pages()))]

    assert len(set(some)) == len(some)
    assert some[: len(read_pages())] == [row.id for row in read_pages()]


def test_a_producer_goes_on_where_the_last_one_stopped() -> None:
    """However often it is stopped, the topics hold the stream from its start, once, labels behind."""
    with opened(settings := settings_for(), PARTITIONS) as log:
        for records in (7, 1, 500, 10_000):
            send(log, settings, records)

        sent = [row.id for row in itertools.islice(repeat(read_pages()), 10_254)]
        assert ids(log, "examples") == sorted(sent)
        assert ids(log, "labels") == sorted(sent[: 10_254 - OUTSTANDING])


def test_examples_and_labels_of_an_id_share_a_partition() -> None:
    """As every other producer places them: by the key."""
    with opened(settings := settings_for(), PARTITIONS) as log:
        send(log, settings, OUTSTANDING + 100)
        of = {
            topic: {record.key: p for p in range(PARTITIONS) for record in log.read(topic, p, 0)}
            for topic in INPUTS
        }

        assert of["labels"]
        assert all(of["examples"][key] == p for key, p in of["labels"].items())


def test_labels_are_as_late_as_they_are_told_to_be() -> None:
    """In seconds of the stream's pace."""
    with opened(settings := settings_for(), PARTITIONS) as log:
        send(log, settings, 100, late_s=0.03)

        assert len(ids(log, "examples")) - len(ids(log, "labels")) == 0.03 * RATE


def test_a_drift_flips_the_labels_that_are_still_to_come() -> None:
    """Each label says the opposite of the page's from where the earlier producer stopped."""
    truth = {row.id: row.label for row in read_pages()}
    with opened(settings := settings_for(), PARTITIONS) as log:
        send(log, settings, 200, late_s=0)
        before = {each["id"] for each in values(log, "labels")}
        send(log, settings, 200, flip(repeat(read_pages())), late_s=0)

        wrong = {each["id"] for each in values(log, "labels") if each["label"] is not truth[each["id"]]}
        assert len(before) == 100
        assert wrong == set(ids(log, "labels")) - before


def test_labels_that_one_producer_withholds_the_next_one_sends() -> None:
    """They come late, and the stream is whole again."""
    with opened(settings := settings_for(), PARTITIONS) as log:
        send(log, settings, 300, late_s=0, topics=["examples"])
        assert (len(ids(log, "examples")), ids(log, "labels")) == (300, [])

        send(log, settings, 500, late_s=0)
        assert ids(log, "labels") == ids(log, "examples")
        assert len(ids(log, "labels")) == 400


@pytest.mark.parametrize("option", [["--late", "2"], ["--withhold-labels"]])
def test_what_only_the_endless_stream_can_do_is_refused_elsewhere(option: list[str]) -> None:
    """`demo` alone keeps its promise of numbers that never change."""
    refused = run("demo", "--once", *option, log="sqlite::memory:")

    assert refused.exit_code == 2
    assert f"{option[0]}: only with --only-producer" in refused.stderr


@pytest.mark.parametrize(
    ("options", "changes"), [([], None), (["--set=learner.gamma=0.05"], 0), (["--flip-labels"], 1)]
)
def test_a_demo_that_flips_its_labels_proves_one_change(options: list[str], changes: int | None) -> None:
    """With the margin that it declares, with which the pages as they are prove none."""
    told = ok("demo", "--once", "--json", "--set=http.address=", *options, log="sqlite::memory:")
    report = json.loads(told.stdout)

    assert report["labelled"] == 1250
    assert report.get("proved_changes", {}).get("count") == changes


def test_it_cannot_be_told_to_end(tmp_path: Path) -> None:
    """`--once` is refused, as are a rate that would never send and a delay below zero."""
    log = f"sqlite:{tmp_path / 'log.db'}"

    assert run("demo", "--only-producer", "--once", log=log).exit_code == 2
    assert run("demo", "--only-producer", "--rate", "0", log=log).exit_code == 2
    assert run("demo", "--only-producer", "--late", "-1", log=log).exit_code == 2


def test_missing_topics_are_not_made() -> None:
    """`topics create` makes them, with as many partitions as the workers were told."""
    assert run("demo", "--only-producer", log="sqlite::memory:").exit_code == 5
