"""Data as it must not be, on a real broker: the worker goes on, counts it, and its log stays provable."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mistakebound.log import open_log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.faults.support.data_stream import (
    MAX_DELAY_S,
    PARKING_S,
    TOPIC_CONFIG,
    UNREADABLE,
    UNUSABLE,
    Came,
    batches,
)
from tests.worker.support.working import Run, settings_for

pytestmark = pytest.mark.kafka


@dataclass(frozen=True)
class Worked:
    """A log that a worker has been through, started anew for each batch."""

    settings: Settings
    came: Came
    run: Run


@pytest.fixture(scope="module")
def worked(kafka_bootstrap: str) -> Iterator[Worked]:
    settings = settings_for(
        f"kafka://{kafka_bootstrap}", labels={"max_delay": MAX_DELAY_S, "parking": PARKING_S}
    )
    with open_log(settings) as log:
        log.create_topics(1, TOPIC_CONFIG)
        for batch in batches(time.time_ns() // 1_000_000 - 3_600_000):
            log.append(batch)
            run = Run(log, settings)
        yield Worked(settings, Came(log), run)


def test_what_nobody_can_read_is_set_aside_with_the_reason(worked: Worked) -> None:
    """Poison pills, tombstones, frames and oversize records become dead letters, and the records after them are handled."""
    dead = worked.came.dead
    assert {name: worked.came.reason(name) for name in dead} == {
        "not UTF-8": "not-json",
        "cut off": "not-json",
        "no object": "not-an-object",
        "framed": "schema-framing",
        "a tombstone": "tombstone",
        "too deep": "not-json",
        "not finite": "not-json",
        "too large": "oversize",
        "unknown value": "unknown-label",
        "no label": "missing-label",
        "nothing": "tombstone",
    }
    for name, value in {**UNREADABLE, **UNUSABLE}.items():
        kept = dead[name].value
        assert kept == value or (name == "too large" and value and kept and value.startswith(kept))
    assert worked.came.of("first")[0] == "label applied"


def test_an_example_sent_twice_is_predicted_once(worked: Worked) -> None:
    """The second is counted as a duplicate."""
    assert [each.id for each in worked.came.predicted].count("twice") == 1
    assert worked.came.of("twice") == ["example duplicate", "label applied"]


def test_only_the_first_of_several_labels_counts(worked: Worked) -> None:
    """The same again is a duplicate, another value is a conflict."""
    assert worked.came.of("first") == ["label applied", "label duplicate", "label conflict"]


def test_a_label_before_its_example_waits_for_it(worked: Worked) -> None:
    """It is parked and then applied; one whose example never comes ends as unmatched."""
    assert worked.came.of("early") == ["label parked", "label applied"]
    assert worked.came.of("stranger") == ["label parked", "label unmatched"]


def test_a_label_after_expiry_is_counted_as_expired(worked: Worked) -> None:
    """The example was given up, and neither it nor its label changes the model."""
    assert worked.came.of("late") == ["example expired", "label expired"]


def test_a_clock_that_is_a_year_behind_changes_nothing(worked: Worked) -> None:
    """Its example is predicted and labelled like any other; stream time does not go back."""
    assert worked.came.of("a year behind") == ["label applied"]
    times = [each.at for each in worked.came.outcomes if each.at is not None]
    assert times == sorted(times)


def test_a_clock_that_is_a_year_ahead_expires_what_waits_and_nothing_that_comes(worked: Worked) -> None:
    """That is what its time says; examples with right clocks afterwards are labelled as ever."""
    assert worked.came.of("waits") == ["example expired", "label expired"]
    assert worked.came.of("a year ahead") == worked.came.of("after") == ["label applied"]


def test_each_record_is_counted_once(worked: Worked) -> None:
    """The tallies of all that came; none of it cost a rebuild."""
    tallies = worked.came.outcomes[-1].tallies
    assert tallies is not None
    life = tallies.life
    assert {name: count for name, count in life.examples.items() if count} == {
        "consumed": 18,
        "labelled": 7,
        "expired": 2,
        "duplicate": 1,
        "invalid": len(UNREADABLE),
    }
    assert {name: count for name, count in life.labels.items() if count} == {
        "consumed": 15,
        "applied": 7,
        "duplicate": 1,
        "conflict": 1,
        "expired": 2,
        "unmatched": 1,
        "invalid": len(UNUSABLE),
    }


def test_the_audit_finds_nothing(worked: Worked) -> None:
    """Every prediction, update and tally can be derived again."""
    flags = ("--set", f"log.prefix={worked.settings.log.prefix}", "--set", "checkpoint.url=")
    found = json.loads(ok("audit", "--json", *flags, log=worked.settings.log.url).stdout)
    assert found["differences"] == {}
    assert found["checked"]["predictions"] == len(worked.came.predicted) == 9
