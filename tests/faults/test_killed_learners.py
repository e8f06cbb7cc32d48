"""Every learner survives being killed: the model it comes back with is the one it would have had, to the bit."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mistakebound.config.keys import render_toml
from mistakebound.core.messages.schema import read_prediction
from mistakebound.core.records import Outgoing
from mistakebound.core.replay.replay import Row, as_stream, replay_rows, report_of
from mistakebound.settings import OF_EPOCH, Settings
from mistakebound.worker.takeover import fold_updates
from tests.commands.support.command_line import run
from tests.core.support.every_kind import CASES, FORMS, MORE, Case
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment
from tests.faults.support.stream import BEGUN_MS

pytestmark = pytest.mark.long

EXAMPLES = 240
DELAY = 5
RULES = {"batch": {"max_records": 10}, "checkpoint": {"every_updates": 7}}
ON_KAFKA = ("averaged-perceptron", "kernel-perceptron", "balanced-winnow", "elimination")
"""A few kinds: what is kept of a learner is the same on either log."""
SAID_BESIDE = "perceptron, labels asked for, probabilities"
"""What predictions say beside their class is counted when their labels come, whoever made them."""


def flags(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Settings as `--set` takes them."""
    for section, values in settings.items():
        for name, value in values.items():
            yield f"{section}.{name}={render_toml(value)}"


def rows_of(case: Case) -> list[Row]:
    random = Random(8)
    return [
        Row(f"i{number}", *case.row(random, noise=0.1), tenant=case.tenant(random))
        for number in range(EXAMPLES)
    ]


def killed_within(place: Deployment, child: Child, more: int) -> None:
    """Kill the worker once it has consumed something of what was sent, most often amid the rest."""
    until(lambda: place.consumed() >= more, PATIENCE_S, f"{more} records are consumed", child)
    child.kill()


def survives(case: Case, url: str, prefix: str, children: Children) -> None:
    """A kill; then one prediction for each example, and the model and predictions of a run without any."""
    chosen = case.settings.model_dump(exclude_defaults=True, include=set(OF_EPOCH))
    chosen["labels"] = {**chosen.get("labels", {}), "max_delay": 1000}
    settings = Settings.model_validate(chosen)
    rows = rows_of(case)
    inputs = [
        Outgoing(each.topic, 0, each.key, each.value, (), BEGUN_MS + each.timestamp_ms)
        for each in as_stream(rows, settings, 1, DELAY)
    ]
    part = len(inputs) // 2
    with Deployment(url, prefix, children, *flags(chosen), *flags(RULES), partitions=1) as place:
        place.send(inputs[:part])
        killed_within(place, place.worker(), 30)
        place.send(inputs[part:])
        place.finish(place.worker())

        undisturbed = replay_rows(rows, settings, 1, DELAY)
        expected = undisturbed.model.digest()
        told = json.loads(run("status", "--model", "--json", *place.options, log=None).stdout)
        assert told["model"]["digest"] == expected
        assert told["model"]["updates"] == undisturbed.model.updates
        assert told["mistakes"] == undisturbed.ledgers[0].tallies.life.mistakes
        expected_report = json.loads(report_of(undisturbed).to_json())
        assert told.get("asked") == expected_report.get("asked")
        assert told.get("probabilities") == expected_report.get("probabilities")
        assert fold_updates(place.log, settings, None).model.digest() == expected
        predictions = [read_prediction(record) for record in place.log.read("predictions", 0, 0)]
        assert [each.id for each in predictions] == [row.id for row in rows]
        assert sum(undisturbed.model.updates) > 0


@pytest.mark.parametrize("name", [*FORMS.values(), *MORE, SAID_BESIDE])
def test_a_killed_learner_goes_on_to_the_same_bits_on_sqlite(
    name: str, tmp_path: Path, children: Children
) -> None:
    """A file of its own."""
    survives(CASES[name], f"sqlite:{tmp_path / 'log.db'}", "", children)


@pytest.mark.parametrize("name", [*(FORMS[kind] for kind in ON_KAFKA), SAID_BESIDE])
def test_a_killed_learner_goes_on_to_the_same_bits_on_kafka(
    name: str, kafka_bootstrap: str, prefix: str, children: Children
) -> None:
    """A prefix of its own on the one broker."""
    survives(CASES[name], f"kafka://{kafka_bootstrap}", prefix, children)
