"""Winnow's threshold has had a default since a certain version; epochs from before hold none, which is 0, and go on so.

`winnow.db.gz` and its checkpoint were written before: half of a stream worked off by one worker without a threshold.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.messages.schema import Epoch
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import INITIAL, Settings
from mistakebound.worker.epochs.reset import planned
from mistakebound.worker.epochs.seeding import planned as planned_seeds
from mistakebound.worker.takeover import fold_updates
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import read_updates
from tests.compatibility.support.older_files import DATA, lay_out
from tests.worker.support.working import Run, example, label, rejected, written

SETS = ("--set=learner.kind=winnow", "--set=labels.max_delay=1000", "--set=checkpoint.url=checkpoints")
UNSAID: tuple[dict[str, Any], ...] = ({}, {"threshold": 0})
"""What does not ask for another threshold than 0."""


def settings_of(**learner: Any) -> Settings:
    return Settings.model_validate(
        {
            "log": {"url": "sqlite:log.db"},
            "labels": {"max_delay": 1000},
            "learner": {"kind": "winnow", **learner},
            "checkpoint": {"url": "checkpoints", "every_updates": 3},
        }
    )


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the log and its checkpoint."""
    monkeypatch.chdir(tmp_path)
    lay_out("winnow.db.gz", *(packed.name for packed in DATA.glob("mistakebound_winnow_*.gz")))
    return tmp_path


def more(log: Log) -> None:
    """Negative examples, on which a threshold of 0 errs for ever."""
    for number in range(500, 520):
        log.append([example(number, {"a": 1, f"b{number % 3}": 1}, number), label(number, False, number)])


@pytest.mark.parametrize("learner", UNSAID)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_an_epoch_without_a_threshold_goes_on_with_0(
    older: Path, learner: dict[str, Any], checkpoint: bool
) -> None:
    """From its checkpoint and from the log alone, with checkpoints that fit; every number can be made again."""
    if not checkpoint:
        for file in (older / "checkpoints").iterdir():
            file.unlink()
    settings = settings_of(**learner)
    with open_log(settings) as log:
        more(log)
        first = Run(log, settings, slot="winnow")
        assert first.held.state.model.settings.learner.threshold is None
        again = Run(log, settings, slot="winnow")
        assert again.held.state.model.updates == first.held.state.model.updates

    assert rejected(older / "checkpoints") == []
    assert written(older / "checkpoints")
    report = json.loads(ok("status", "--model", "--json", *SETS).stdout)
    assert report["example_outcomes"]["labelled"] == 60
    assert report["mistakes"] >= 20, "all of the last 20"
    ok("audit", *SETS)


def test_another_threshold_is_refused_in_that_epoch(older: Path) -> None:
    """Whoever asks for the default by name gets it, or is told that the epoch has another."""
    for learner in ({"threshold": INITIAL}, {"threshold": 1.5}):
        settings = settings_of(**learner)
        with open_log(settings) as log, pytest.raises(Refused, match=r"learner\.threshold is"):
            Run(log, settings, slot="winnow")


def test_the_next_epoch_has_the_default(older: Path) -> None:
    """The plan of a reset says so, and the workers take it from there."""
    settings = settings_of()
    with open_log(settings) as log:
        plan = planned(log, settings, None)
        assert plan is not None
        assert [tuple(each) for each in plan.changes] == [("learner.threshold", None, "initial")]
        ok("reset", "--execute", *SETS)
        assert fold_updates(log, settings, None).model.settings.learner.threshold == INITIAL
        assert Run(log, settings, slot="winnow").held.state.model.epoch == 2


def test_seeds_are_learned_as_the_epoch_learns(older: Path) -> None:
    """The rows of one model cannot mean two things."""
    settings = settings_of()
    with open_log(settings) as log:
        plan = planned_seeds(log, settings, [])
        assert plan.seeds.settings["learner"]["threshold"] is None
        assert plan.begins.settings["learner"]["threshold"] is None


def test_a_new_epoch_holds_the_default_by_name(older: Path) -> None:
    """So that a later default could not change it."""
    Path("log.db").unlink()
    settings = settings_of()
    with open_log(settings) as log:
        log.create_topics(1, {})
        Run(log, settings, slot="other")
        (first,) = read_updates(log)
        assert isinstance(first, Epoch)
        assert first.settings["learner"]["threshold"] == "initial"
        assert run("run", "--set=learner.threshold=0", *SETS).exit_code == 5
