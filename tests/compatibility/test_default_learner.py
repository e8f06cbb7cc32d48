"""The default of `learner.kind` was the averaged perceptron; epochs begun with it go on with it where no learner is named.

`log.db` and `averaged.jsonl` were written then: a log half worked off, its checkpoint, and a recording.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import structlog

from mistakebound import load_settings, replay
from mistakebound.core.messages.schema import Epoch
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import Settings
from mistakebound.worker.epochs.reset import planned
from mistakebound.worker.epochs.seeding import planned as planned_seeds
from mistakebound.worker.takeover import fold_updates
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import read_updates
from tests.compatibility.support.older_files import lay_out, unpacked
from tests.worker.support.working import Run, example, label, rejected, written

RULES: dict[str, Any] = {"max_delay": 20, "parking": 10, "max_waiting": 60, "remember": 200}
SETS = tuple(f"--set=labels.{key}={value}" for key, value in RULES.items())
OLDER, DEFAULT = "averaged-perceptron", "perceptron"
UNSAID: tuple[dict[str, Any], ...] = ({}, {"kind": OLDER}, {"gamma": None})
"""What asks for no other learner."""


def settings_of(labels: dict[str, Any] | None = None, **learner: Any) -> Settings:
    return Settings.model_validate(
        {
            "log": {"url": "sqlite:log.db"},
            "labels": {**RULES, **(labels or {})},
            "batch": {"max_records": 37},
            "learner": learner,
            "checkpoint": {"url": "checkpoints", "every_updates": 10},
        }
    )


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the log and its checkpoint."""
    monkeypatch.chdir(tmp_path)
    lay_out("log.db.gz", "mistakebound_one_000000000002.checkpoint.gz")
    return tmp_path


def more(log: Log) -> None:
    """Examples on which a learner of the newest mistakes and one of all of them differ."""
    now = 10**12
    for number in range(500, 540):
        log.append([example(number, {"a": 1, f"b{number % 3}": 1}, now + number)])
        log.append([label(number, number % 5 == 0, now + number)])


@pytest.mark.parametrize("learner", UNSAID)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_an_epoch_of_the_older_default_goes_on(
    older: Path, learner: dict[str, Any], checkpoint: bool
) -> None:
    """From its checkpoint and from the log alone, with checkpoints that fit; every number can be made again."""
    if not checkpoint:
        shutil.rmtree(older / "checkpoints")
    settings = settings_of(**learner)
    with open_log(settings) as log:
        more(log)
        first = Run(log, settings, slot="one")
        assert first.held.state.model.settings.learner.kind == OLDER
        again = Run(log, settings, slot="one")
        assert again.held.state.model.digest() == first.held.state.model.digest()
        assert again.held.state.model.updates == first.held.state.model.updates

    assert rejected(older / "checkpoints") == []
    assert written(older / "checkpoints")
    report = json.loads(ok("status", "--model", "--json", *SETS).stdout)
    assert (report["learner"], report["model"]["digest"]) == (OLDER, first.held.state.model.digest())
    ok("audit", *SETS)


def test_it_makes_the_same_decisions_whether_the_learner_is_named_or_not(older: Path) -> None:
    """Record by record, in every topic that a worker writes."""
    made = []
    for number, learner in enumerate(UNSAID[:2]):
        shutil.copy("log.db", f"{number}.db")
        given = {"log": {"url": f"sqlite:{number}.db"}, "checkpoint": {"url": ""}, "learner": learner}
        settings = Settings.model_validate({"labels": RULES, **given})
        with open_log(settings) as log:
            more(log)
            Run(log, settings, slot="one")
            made.append(
                [
                    (topic, p, record.value)
                    for topic in ("predictions", "outcomes", "updates")
                    for p in range(log.partitions)
                    for record in log.read(topic, p, 0)
                ]
            )
    assert made[0] == made[1]


def test_page_metrics_and_log_lines_name_the_learner_that_is_used(older: Path) -> None:
    """Not the default, which the settings hold."""
    settings = settings_of()
    with open_log(settings) as log, structlog.testing.capture_logs() as said:
        more(log)
        worked = Run(log, settings, slot="one")
    (kept,) = [each for each in said if each["event"] == "learner_kept"]
    assert (kept["learner"], kept["default"], kept["epoch"]) == (OLDER, DEFAULT, 1)
    (assigned,) = [each for each in said if each["event"] == "assigned"]
    assert assigned["learner"] == OLDER
    page = worked.metrics.page()[0].decode()
    assert f'algorithm="{OLDER}"' in page
    assert f'algorithm="{DEFAULT}"' not in page


def test_a_learner_that_is_named_is_refused_in_that_epoch(older: Path) -> None:
    """The default too, where it is asked for by name."""
    for kind in (DEFAULT, "winnow"):
        settings = settings_of(kind=kind)
        with (
            open_log(settings) as log,
            pytest.raises(Refused, match=rf"learner\.kind is '{kind}', the epoch"),
        ):
            Run(log, settings, slot="one")


def test_what_the_older_learner_cannot_do_is_refused_by_its_own_name(older: Path) -> None:
    """The settings are right for the default, so only the epoch can say so."""
    settings = settings_of({"ask": 2.0})
    with open_log(settings) as log, pytest.raises(Refused, match=r"labels\.ask is 2\.0") as refused:
        Run(log, settings, slot="one")
    assert "learner.kind" not in str(refused.value)


def test_the_next_epoch_has_the_default(older: Path) -> None:
    """The plan of a reset says so, and the workers take it from there, told or not."""
    settings = settings_of()
    with open_log(settings) as log:
        plan = planned(log, settings, None)
        assert plan is not None
        assert ("learner.kind", OLDER, DEFAULT) in plan.changes
        assert 'learner.kind: "averaged-perceptron" -> "perceptron"' in ok("reset", "--execute", *SETS).stdout
        for learner in ({}, {"kind": DEFAULT}):
            more(log)
            held = Run(log, settings_of(**learner), slot="one").held
            assert (held.state.model.epoch, held.state.model.settings.learner.kind) == (2, DEFAULT)
    ok("audit", *SETS)


def test_a_reset_to_the_present_version_keeps_what_was_learned(older: Path) -> None:
    """Both learners add up the same updates: only what predicts is another."""
    settings = settings_of()
    with open_log(settings) as log:
        more(log)
        before = Run(log, settings, slot="one").held.state.model
        to = ",".join(map(str, before.updates))
        ok("reset", "--execute", "--to", to, *SETS)
        after = fold_updates(log, settings, None).model
    assert after.settings.learner.kind == DEFAULT
    assert dict(after.learner.theta()) == dict(before.learner.theta())
    assert after.learner.theta()


def test_a_reset_that_is_told_nothing_leaves_the_learner(older: Path) -> None:
    """Without `labels.max_delay`, which each worker needs, what is not said stays as in the epoch."""
    told = ok("reset", "--set=learner.window=50")
    assert "learner.window: unset -> 50" in told.stdout
    assert "learner.kind: " not in told.stdout


def test_seeds_are_learned_as_the_epoch_learns(older: Path) -> None:
    settings = settings_of()
    with open_log(settings) as log:
        plan = planned_seeds(log, settings, [])
    assert plan.seeds.settings["learner"]["kind"] == OLDER
    assert plan.begins.settings["learner"]["kind"] == OLDER


def test_a_recording_is_replayed_with_its_own_learner(older: Path) -> None:
    """By the verb and in users' tests; with the default by name it is run anew."""
    Path("day.jsonl").write_bytes(unpacked("averaged.jsonl.gz"))
    labels = {"labels": RULES, "batch": {"max_records": 37}}
    found = replay("day.jsonl", load_settings(**labels))
    assert (found.learner, found.afresh) == (OLDER, None)
    other = replay("day.jsonl", load_settings(learner={"kind": DEFAULT}, **labels))
    assert other.learner == DEFAULT
    assert "learner.kind is 'perceptron', recorded 'averaged-perceptron'" in str(other.afresh)
    ok("audit", "--recording", "day.jsonl", log=None)


def test_a_new_epoch_holds_the_default_by_name(older: Path) -> None:
    """So that a later default could not change it; the older learner is refused there by its name alone."""
    Path("log.db").unlink()
    settings = settings_of()
    with open_log(settings) as log:
        log.create_topics(1, {})
        Run(log, settings, slot="other")
        (first,) = read_updates(log)
    assert isinstance(first, Epoch)
    assert first.settings["learner"]["kind"] == DEFAULT
    assert run("run", f"--set=learner.kind={OLDER}", *SETS).exit_code == 5


def test_many_classes_go_on_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their epoch names the same kind."""
    monkeypatch.chdir(tmp_path)
    labels = {**RULES, "classes": ["a", "b", "c"]}
    begun, now = (
        Settings.model_validate({"log": {"url": "sqlite:log.db"}, "labels": labels, "learner": learner})
        for learner in ({"kind": OLDER}, {})
    )
    with open_log(begun) as log:
        log.create_topics(1, {})
        Run(log, begun, slot="one")
        assert Run(log, now, slot="one").held.state.model.settings.learner.kind == OLDER
