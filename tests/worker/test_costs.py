"""Costs that are only counted may change at any time; those that are learned from are part of the epoch."""

import json
from typing import Any

import pytest

from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import Settings
from mistakebound.worker.metrics.metrics import Metrics
from tests.commands.support.command_line import ok, run
from tests.worker.support.events import committed
from tests.worker.support.working import Run, example, label, opened, settings_for

DEAR: dict[str, Any] = {"max_delay": 1000, "costs": {"false_negative": 25}}


def work(log: Log, settings: Settings, first: int) -> Run:
    """Ten positive examples, of which the first is predicted negative."""
    for number in range(first, first + 10):
        log.append([example(number, {"a": 1.0}, number), label(number, True, number)])
    return Run(log, settings)


def settings_of(**more: Any) -> Settings:
    return settings_for(learner={"kind": "perceptron", **more.pop("learner", {})}, labels={**DEAR, **more})


def test_costs_that_are_only_counted_can_be_set_at_any_time() -> None:
    """No epoch holds them, and they are applied to all that was counted."""
    with opened(settings_for(learner={"kind": "perceptron"}, labels={"max_delay": 1000}), 1) as log:
        work(log, settings_for(learner={"kind": "perceptron"}, labels={"max_delay": 1000}), 0)
        for cost in (25, 7.5):
            held = work(log, settings_of(costs={"false_negative": cost}), 100 + int(cost)).held
            totals = held.state.totals(0).confusion
            assert totals.costs["model"] == cost * totals.mistakes["model"] > 0
        assert held.state.model.epoch == 1


def test_costs_that_are_learned_from_are_part_of_the_epoch() -> None:
    """Others would be another model."""
    learner = {"cost_sensitive": True}
    with opened(settings_of(learner=learner), 1) as log:
        held = work(log, settings_of(learner=learner), 0).held
        assert held.state.model.learner.theta()["a"] == 25.0
        with pytest.raises(Refused, match=r"labels\.costs\.false_negative is"):
            Run(log, settings_of(learner=learner, costs={"false_negative": 26}))
        with pytest.raises(Refused, match=r"learner\.cost_sensitive is"):
            Run(log, settings_of())


def test_to_say_that_costs_are_not_learned_from_begins_no_epoch() -> None:
    """It is what an epoch that was begun without the setting does."""
    with opened(settings_of(), 1) as log:
        work(log, settings_of(), 0)
        said = settings_of(learner={"cost_sensitive": False})
        assert work(log, said, 100).held.state.model.epoch == 1
        assert work(log, settings_of(), 200).held.state.model.epoch == 1


def test_the_cost_is_a_gauge_of_the_partition() -> None:
    """The model's, and that of always the majority."""
    settings = settings_of()
    with opened(settings, 1) as log:
        totals = work(log, settings, 0).held.state.totals(0)
    metrics = Metrics(["true", "false"], "perceptron", "abc")
    metrics.observe(committed(totals={0: totals}))
    page = metrics.page()[0].decode()
    assert 'mistakebound_partition_cost{of="model",partition="0"} 25.0' in page
    assert 'mistakebound_partition_cost{of="majority",partition="0"} 25.0' in page


def test_a_report_tells_the_cost(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is set now; as the epoch has it, where that was learned from."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(json.dumps({"id": str(n), "features": {"a": 1}, "label": True}) + "\n" for n in range(5))
    (tmp_path / "rows.jsonl").write_text(rows)
    flags = (
        "--quiet",
        "--json",
        "--set",
        "labels.costs={false_negative = 2.5}",
        "--set",
        "learner.kind=perceptron",
    )
    told = json.loads(ok("replay", "rows.jsonl", *flags, log=None).stdout)
    assert told["confusion"]["model"]["cost"] == 2.5
    assert told["confusion"]["majority"]["cost"] == 2.5
    refused = run("replay", "rows.jsonl", *flags, "--set", "learner.delay_policy=issued", "--set", "learner.cost_sensitive=true", log=None)  # fmt: skip
    assert refused.exit_code == 2
    assert "learner.delay_policy" in refused.stderr
