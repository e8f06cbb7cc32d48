"""A torn step on a real broker, with each client: healed without a loss, or refused with the way on.

Every state, on sqlite: `tests/worker/test_torn_steps.py`.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import read_prediction
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.faults.support.chance import clients, of_client
from tests.log.support.place import KEEP
from tests.worker.support.torn import SIZE, tear
from tests.worker.support.working import Run, settings_for
from tests.worker.test_torn_steps import HEALED, MISSING, whole

pytestmark = pytest.mark.kafka


@pytest.fixture(params=clients())
def settings(
    request: pytest.FixtureRequest, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    monkeypatch.setenv("MISTAKEBOUND_FAULTS_CLIENT", request.param)
    return settings_for(of_client(f"kafka://{kafka_bootstrap}"), batch={"max_records": SIZE})


@pytest.fixture
def log(settings: Settings) -> Iterator[Log]:
    with open_log(settings) as log:
        log.create_topics(1, KEEP)
        yield log


def audited(settings: Settings) -> Any:
    """What the command says of the live log."""
    flags = ("--set", f"log.prefix={settings.log.prefix}", "--set", "checkpoint.url=")
    return json.loads(ok("audit", "--json", *flags, log=settings.log.url).stdout)


@pytest.mark.parametrize("state", HEALED)
def test_what_loses_nothing_is_healed(state: str, log: Log, settings: Settings) -> None:
    """One prediction for each example, and the audit finds nothing."""
    keep, positions = HEALED[state]
    tear(log, settings, keep, positions=positions)
    Run(log, settings)
    whole(log, settings)
    assert audited(settings)["differences"] == {}


@pytest.mark.parametrize("state", MISSING)
def test_missing_predictions_are_told_and_made_again_when_asked_for(
    state: str, log: Log, settings: Settings
) -> None:
    """Nothing is written before the operator agrees, and nothing is lost when he does."""
    tear(log, settings, MISSING[state])
    for from_outcomes in (False, True):
        with pytest.raises(BadLog, match="--predict-missing"):
            Run(log, settings, from_outcomes=from_outcomes)

    Run(log, settings, predict_missing=True)

    predictions = [read_prediction(record) for record in log.read("predictions", 0, 0)]
    assert any(each.again is True for each in predictions)
    whole(log, settings)
    assert audited(settings)["differences"] == {}
