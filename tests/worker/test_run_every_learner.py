"""Every learner runs by name, in the worker's loop as in a replay."""

import json
from random import Random

import pytest
from structlog.testing import capture_logs

from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.records import Outgoing
from mistakebound.core.replay.replay import Row, as_stream, replay_rows, report_of
from mistakebound.settings import OF_EPOCH, Settings
from tests.core.support.every_kind import EVERY_CASE, Case
from tests.worker.support.working import Recount, Run, opened, settings_for

EXAMPLES = 80
DELAY = 5


def rows_of(case: Case) -> list[Row]:
    random = Random(2)
    return [Row(f"i{number}", *case.row(random), tenant=case.tenant(random)) for number in range(EXAMPLES)]


def settings_of(case: Case) -> Settings:
    chosen = case.settings.model_dump(include=set(OF_EPOCH))
    return settings_for(
        learner=chosen["learner"],
        features=chosen["features"],
        labels=chosen["labels"] | {"max_delay": 1000},
        batch={"max_records": 13},
    )


def inputs(case: Case, settings: Settings, partitions: int) -> list[Outgoing]:
    return [
        Outgoing(each.topic, each.partition, each.key, each.value, (), each.timestamp_ms)
        for each in as_stream(rows_of(case), settings, partitions, DELAY)
    ]


@EVERY_CASE
def test_the_worker_ends_with_the_model_that_a_replay_ends_with(case: Case) -> None:
    """Same predictions counted, same mistakes, same digest; the log folds to it too."""
    settings = settings_of(case)
    with capture_logs(), opened(settings) as log:
        log.append(inputs(case, settings, 1))
        state = Run(log, settings).held.state
        recount = Recount(log, settings)
    replayed = report_of(replay_rows(rows_of(case), settings, 1, DELAY))
    assert report_of(state).to_json() == replayed.to_json()
    assert recount.digest == replayed.model.digest
    assert len(recount.predicted) == EXAMPLES


@EVERY_CASE
def test_a_worker_of_several_partitions_holds_the_logs_model(case: Case) -> None:
    """As many as the learner may have."""
    settings, partitions = settings_of(case), case.partitions(3)
    with capture_logs(), opened(settings, partitions) as log:
        log.append(inputs(case, settings, partitions))
        state = Run(log, settings).held.state
        recount = Recount(log, settings)
    assert state.model.digest() == recount.digest
    assert sum(each.life.examples["labelled"] for each in recount.tallies) == EXAMPLES
    json.dumps(dict(state.model.learner.weights()), allow_nan=False)


LARGE, SMALL = 1e100, 1e-300
"""As large as a feature may be, and smaller than its square can tell from 0."""


def declared_in_full(case: Case, gamma: float) -> list[Settings]:
    """With a margin, and where it goes together also with labels on request."""
    given = settings_of(case)
    learner = given.learner.model_dump()
    if "gamma" in KINDS[given.learner.kind].parameters:
        learner["gamma"] = gamma
    declared = Settings.model_validate(given.model_dump() | {"learner": learner})
    asking = Settings.model_validate(
        declared.model_dump() | {"labels": declared.labels.model_dump() | {"ask": 1.0}}
    )
    return [each for each in (declared, asking) if not any(unmet(each))]


@EVERY_CASE
@pytest.mark.parametrize("gamma", [1e-200, 0.1, 1e200])
def test_no_value_that_a_producer_sends_stops_a_worker(case: Case, gamma: float) -> None:
    """Now, or when it starts again: neither the largest and smallest values, of either sign, nor what bounds make of them."""
    labels = [row.label for row in rows_of(case)]
    values = [
        {"a": LARGE, "b": -LARGE},
        {"a": SMALL},
        {"b": -1.0},
        {"a": -LARGE, "b": SMALL},
        {"a": 0.0, "b": 1.0},
    ] * 4
    rows = [
        Row(f"v{at}", x, label, tenant="x") for at, (x, label) in enumerate(zip(values, labels, strict=False))
    ]
    for settings in declared_in_full(case, gamma):
        with capture_logs(), opened(settings) as log:
            half = len(rows) // 2
            for some in (rows[:half], rows[half:]):
                sent = as_stream(some, settings, 1, 2)
                log.append(
                    [Outgoing(each.topic, 0, each.key, each.value, (), each.timestamp_ms) for each in sent]
                )
                state = Run(log, settings).held.state
            assert Recount(log, settings).digest == state.model.digest()
