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
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.faults.support.chance import clients, of_client
from tests.log.support.place import KEEP
from tests.worker.support.torn import SIZE, Torn, tear
from tests.worker.support.working import Run, example, label, settings_for
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


def test_missing_predictions_are_told_though_all_else_is_there_and_positions_agree(
    log: Log, settings: Settings
) -> None:
    """Nothing but the predictions is gone, and the worker went on without a word: the next takeover misses them.

    What is made again lies behind later predictions then.
    """
    log.append([example(number, {"a": number}, 1_000 + number) for number in range(4 * SIZE)])
    keep = MISSING["outcomes visible and the last predictions aborted"]
    Run(Torn(log, 1, keep, positions=True, lying=True, once=True), settings)
    ends = log.high_watermark("predictions", 0)
    with pytest.raises(BadLog, match=rf"counts {SIZE - 2} examples .* --predict-missing"):
        Run(log, settings)
    assert log.high_watermark("predictions", 0) == ends

    Run(log, settings, predict_missing=True)

    log.append([label(number, True, 9_000) for number in range(4 * SIZE)])
    Run(log, settings)
    sources = [read_prediction(record).source for record in log.read("predictions", 0, 0)]
    assert sorted(sources) == list(range(4 * SIZE))
    assert sources != sorted(sources)
    assert audited(settings)["differences"] == {}


@pytest.mark.parametrize(
    "state", ["only the first predictions visible", "positions of N+1 with outputs of N"]
)
def test_a_partition_whose_first_step_was_torn_is_begun_when_asked_for(
    state: str, log: Log, settings: Settings
) -> None:
    """What is published is kept, and the rest is made as if nothing had been."""
    keep, positions = HEALED[state]
    tear(log, settings, keep, positions=positions, at=0)
    kept = [read_prediction(record).source for record in log.read("predictions", 0, 0)]
    with pytest.raises((BadLog, Refused), match=r"[Ss]tart with --resume-from-outcomes"):
        Run(log, settings)

    Run(log, settings, from_outcomes=True)

    assert [read_prediction(record).source for record in log.read("predictions", 0, 0)][: len(kept)] == kept
    whole(log, settings)
    assert audited(settings)["differences"] == {}
