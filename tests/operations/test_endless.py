"""The demo's stream without an end: goes on where it was, and says nothing twice."""

import itertools
import json
import threading
from pathlib import Path

from service.commands.demo import rows
from service.commands.endless import LATE_S, laps, produce
from service.core.records import INPUTS, Outgoing
from service.log.protocol import Log
from service.settings import Settings
from tests.operations.command_line import run
from tests.operations.working import opened, settings_for

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


def send(log: Log, settings: Settings, records: int) -> None:
    """Let the producer send so many records, without resting between them."""
    stop = threading.Event()
    stop.wait = lambda timeout=None: stop.is_set()  # type: ignore[method-assign]
    produce(StopsAfter(log, records, stop), settings, laps(rows()), RATE, stop)  # type: ignore[arg-type]


def ids(log: Log, topic: str) -> list[str]:
    return sorted(
        json.loads(record.value or b"")["id"] for p in range(PARTITIONS) for record in log.read(topic, p, 0)
    )


def test_ids_of_every_lap_are_new() -> None:
    """A worker predicts no id twice, so a second lap under the first one's ids would do nothing."""
    some = [row.id for row in itertools.islice(laps(rows()), 3 * len(rows()))]

    assert len(set(some)) == len(some)
    assert some[: len(rows())] == [row.id for row in rows()]


def test_a_producer_goes_on_where_the_last_one_stopped() -> None:
    """However often it is stopped, the topics hold the stream from its start, once, labels behind."""
    with opened(settings := settings_for(), PARTITIONS) as log:
        for records in (7, 1, 500, 10_000):
            send(log, settings, records)

        sent = [row.id for row in itertools.islice(laps(rows()), 10_254)]
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


def test_it_cannot_be_told_to_end(tmp_path: Path) -> None:
    """`--once` is refused, as is a rate that would never send."""
    log = f"sqlite:{tmp_path / 'log.db'}"

    assert run("demo", "--only-producer", "--once", log=log).exit_code == 2
    assert run("demo", "--only-producer", "--rate", "0", log=log).exit_code == 2


def test_missing_topics_are_not_made() -> None:
    """`topics create` makes them, with as many partitions as the workers were told."""
    assert run("demo", "--only-producer", log="sqlite::memory:").exit_code == 5
