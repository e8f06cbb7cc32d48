"""Every learner runs by name, in the worker's loop as in a replay."""

import json
from random import Random

from structlog.testing import capture_logs

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
