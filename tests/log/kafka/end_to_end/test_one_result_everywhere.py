"""One complete stream, one result: live on Kafka, live on sqlite, in replay, whatever the batches."""

import json
import time

import pytest

from mistakebound.core.records import INPUTS, Outgoing
from mistakebound.core.replay.replay import replay_records
from mistakebound.settings import FeatureSettings, Settings
from tests.worker.support.working import Run, opened, settings_for, stream

RULES = {"max_delay": 0.02, "parking": 0.01, "max_waiting": 8, "remember": 10}


@pytest.fixture(scope="module")
def inputs() -> list[Outgoing]:
    """A stream with early, late, double and lost labels; its times are fixed, near enough to be kept."""
    begun_ms = round(time.time() * 1000) - 3_600_000
    found = sorted(stream(300, delay=10) + stream(40, seed=2), key=lambda each: each.timestamp_ms or 0)
    return [each._replace(timestamp_ms=begun_ms + (each.timestamp_ms or 0)) for each in found]


@pytest.mark.parametrize("size", [1, 7, 50, 333, 4_000])
def test_kafka_sqlite_and_replay_agree(size: int, kafka_bootstrap: str, inputs: list[Outgoing]) -> None:
    """The same tallies and the same digest, at five batch sizes."""
    results = []
    for url in (f"kafka://{kafka_bootstrap}", "sqlite::memory:"):
        chosen = settings_for(url, labels=RULES, batch={"max_records": size})
        with opened(chosen) as log:
            log.append(inputs)
            state = Run(log, chosen).held.state
            records = [record for topic in INPUTS for record in log.read(topic, 0, 0)]
        results.append((state.ledgers[0].tallies, state.model.digest()))
    replayed = replay_records(records, Settings(learner=chosen.learner, labels=chosen.labels), 1)
    results.append((replayed.ledgers[0].tallies, replayed.model.digest()))

    assert results[0] == results[1] == results[2]
    counted = results[0][0].life
    assert min(counted.examples["evicted"], counted.labels["expired"], counted.examples["duplicate"]) > 0


def test_kafka_sqlite_and_replay_agree_on_every_tenant(kafka_bootstrap: str, inputs: list[Outgoing]) -> None:
    """With a model for each: tallies, those by tenant included, and digest; the feature `a` says whose an example is."""
    results = []
    for url in (f"kafka://{kafka_bootstrap}", "sqlite::memory:"):
        chosen = settings_for(url, labels=RULES, batch={"max_records": 50}, features={"cross": "/shop"})
        with opened(chosen) as log:
            log.append([_of_a_shop(each) for each in inputs])
            state = Run(log, chosen).held.state
            records = [record for topic in INPUTS for record in log.read(topic, 0, 0)]
        results.append((state.ledgers[0].tallies, state.model.digest()))
    crossing = FeatureSettings(cross="/shop")
    replayed = replay_records(
        records, Settings(learner=chosen.learner, labels=chosen.labels, features=crossing), 1
    )
    results.append((replayed.ledgers[0].tallies, replayed.model.digest()))

    assert results[0] == results[1] == results[2]
    assert set(results[0][0].tenants) == {"books", "shoes"}


def _of_a_shop(each: Outgoing) -> Outgoing:
    if each.topic != "examples":
        return each
    message = json.loads(each.value or b"")
    message["shop"] = "books" if message["features"]["a"] > 0 else "shoes"
    return each._replace(value=json.dumps(message).encode())
