"""`checkpoint`: what `list` names, `show`, `verify` and `audit` find."""

import json
from pathlib import Path

import pytest

from mistakebound.core.messages.schema import read_prediction
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import work_on
from tests.worker.support.working import Run, altered, example, opened

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("url", ["checkpoints", "kept/here"])
def test_a_listed_name_is_found_wherever_the_store_is(settings: Settings, url: str) -> None:
    """By the same settings; no path has to be put together."""
    other = altered(settings, checkpoint={"url": url}, labels={"max_delay": 86_400})
    with opened(other) as log:
        work_on(log, other)
    place = ["--set", f"checkpoint.url={url}", "--set", f"log.prefix={settings.log.prefix}"]
    (listed,) = json.loads(ok("checkpoint", "list", "--json", *place, log=None).stdout)
    name = listed["file"]
    assert "/" not in name
    assert json.loads(ok("checkpoint", "show", name, *place, log=None).stdout)["epoch"] == 1
    assert ok("checkpoint", "verify", name, *place, log=None).stdout == f"{name}: valid\n"
    audited = json.loads(ok("audit", name, "--json", *place, log=settings.log.url).stdout)
    assert audited["checked"]["checkpoint files"] == 1


@pytest.mark.parametrize("kind", ["averaged-perceptron", "perceptron"])
def test_the_weights_that_predict_are_shown_and_named(settings: Settings, kind: str) -> None:
    """Of an averaged learner both: the plain ones, and the averages, which times an example's features are its score."""
    other = altered(
        settings,
        checkpoint={"url": "checkpoints"},
        labels={"max_delay": 86_400},
        learner={"kind": kind},
    )
    with opened(other) as log:
        work_on(log, other)
        log.append([example(900, {"a": 0.5, "b1": 1.0}, 9_000)])
        Run(log, other)
        newest = [read_prediction(record) for record in log.read("predictions", 0, 0)][-1]
    place = ["--set", "checkpoint.url=checkpoints", "--set", f"log.prefix={settings.log.prefix}"]
    name = json.loads(ok("checkpoint", "list", "--json", *place, log=None).stdout)[-1]["file"]

    shown = json.loads(ok("checkpoint", "show", name, "--top", "100", *place, log=None).stdout)

    averaged = kind == "averaged-perceptron"
    assert shown["predicts_with"] == ("largest_averaged_weights" if averaged else "largest_weights")
    assert ("largest_averaged_weights" in shown) is averaged
    weights = shown[shown["predicts_with"]]
    score = weights["BIAS"] + 0.5 * weights["a"] + weights["b1"]
    assert newest.id == "i900"
    assert newest.score == pytest.approx(score)


@pytest.mark.long
@pytest.mark.parametrize("log", [None, "sqlite:mine.db"])
def test_in_the_demos_folder_the_demos_checkpoints_are_looked_at(log: str | None) -> None:
    """Where nothing else is named: that is said, and what is listed is found."""
    ok("demo", "--once", "--set", "http.address=127.0.0.1:0", log=log)
    listed = ok("checkpoint", "list", "--json", log=log)
    assert "these are the demo's" in listed.stderr
    name = json.loads(listed.stdout)[-1]["file"]
    shown = json.loads(ok("checkpoint", "show", name, log=log).stdout)
    assert shown["digest"].startswith("72b741bfd063")
    assert ok("checkpoint", "verify", name, log=log).stdout == f"{name}: valid\n"


def test_a_folder_that_is_named_is_the_one_that_is_meant() -> None:
    """By a flag: the demo's is not looked into instead."""
    Path("mistakebound-demo.db-checkpoints").mkdir()
    told = ok("checkpoint", "list", "--set", "checkpoint.url=./checkpoints", log=None)
    assert "no checkpoints in" in told.stderr
    assert "demo" not in told.stderr


def test_an_unknown_name_is_refused_with_where_it_was_looked_for() -> None:
    """The folder is part of the message."""
    refused = run("checkpoint", "show", "none.checkpoint", log=None)
    assert refused.exit_code == 2
    assert (
        "checkpoints/none.checkpoint cannot be read" in refused.stderr or "cannot be read" in refused.stderr
    )
