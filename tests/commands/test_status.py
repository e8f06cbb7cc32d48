"""`status`: one cut through a log on which a worker goes on, under the settings that the log's epoch has."""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands import committed_report  # noqa: F401
from mistakebound.commands.committed_report import read_cut, read_report
from mistakebound.config.load import load_in_epoch
from mistakebound.core.messages.schema import Update
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.commands.support.busy import BusyLog
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import read_updates, work_on
from tests.faults.support.recount import digest
from tests.worker.support.working import Run, altered, opened

pytestmark = pytest.mark.usefixtures("quiet")

OTHER = {
    "learner": {"kind": "averaged-perceptron", "learning_rate": 0.5, "gamma": 0.25},
    "features": {"bias": False},
    "labels": {"max_delay": 1000, "remember": 50},
}
"""Settings that are not the defaults, in each section that an epoch fixes."""


def folded(log: Log, updates: list[int]) -> str:
    """The perceptron's digest at a version, by plain sums."""
    rows = []
    for p, count in enumerate(updates):
        row: dict[str, float] = {}
        for each in read_updates(log, p):
            if isinstance(each, Update) and each.n <= count:
                for name, value in {**json.loads(bytes(each.features)), "BIAS": 1.0}.items():
                    row[name] = row.get(name, 0.0) + (1.0 if each.label else -1.0) * value
        rows.append(row)
    return digest(rows)


# --- one cut ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_counts_and_model_are_of_one_cut_while_a_worker_goes_on(settings: Settings, partitions: int) -> None:
    """Updates are counted twice, in `outcomes` and in `updates`: both counts are of the same moment, and so is the model.

    One step writes to all partitions, and these are read one after another: the cut still holds every update that one
    of its updates was decided with, or no bound would be known.
    """
    declared = altered(settings, learner={"kind": "perceptron", "gamma": 0.01})
    with opened(declared, partitions) as log:
        told = read_report(BusyLog(log, declared), declared, fold=True)  # type: ignore[arg-type]
        assert told.updates == sum(told.model.updates) > 0
        assert [bound.count for bound in told.bounds] == [told.updates, told.mistakes]
        assert told.model.digest == folded(log, list(told.model.updates))
        assert told.labelled == sum(told.labels.values()) - told.labels["consumed"]


def test_the_epoch_shown_is_that_of_the_counts(settings: Settings) -> None:
    """An epoch that begins amid the reading is not mixed with the counts of the one before."""
    other = altered(settings, learner={"kind": "averaged-perceptron"})
    with opened(settings, 2) as log:
        work_on(log, settings)

        class Begins:
            """A log in which the next epoch begins, and works, once the present one was read."""

            begun = False

            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

            def high_watermark(self, topic: Any, partition: int) -> int:
                if topic == "outcomes" and not self.begun:
                    self.begun = True
                    from tests.commands.test_reset import reset

                    reset(log, other)
                    work_on(log, other, first=1_000)
                return log.high_watermark(topic, partition)

        cut = read_cut(Begins())  # type: ignore[arg-type]
    assert cut.number == 2
    assert {done.epoch for done in cut.done if done is not None} == {2}


# --- the epoch's settings -----------------------------------------------------------------------------


@pytest.fixture
def worked(settings: Settings) -> Settings:
    """A log whose epoch has other settings than the defaults, and a checkpoint of it."""
    other = altered(settings, **OTHER, checkpoint={"url": "kept"})
    with opened(other) as log:
        work_on(log, other)
    return other


def place(settings: Settings) -> list[str]:
    """Only where the log is."""
    return ["--log", settings.log.url or "", f"--set=log.prefix={settings.log.prefix}"]


@pytest.mark.parametrize(
    "words",
    ["status", "status --model", "status --model --json", "reset", "reset --to=3", "audit", "record -",
     "tail updates --from=beginning --count=1", "topics check", "topics check --json"],
)  # fmt: skip
def test_what_only_reads_a_log_needs_no_settings_but_its_place(worked: Settings, words: str) -> None:
    """The epoch in the log holds the rest."""
    told = ok(*words.split(), *place(worked), log=None)
    assert told.stdout


def test_what_is_taken_from_the_epoch_is_said(worked: Settings) -> None:
    """On stderr, each key that differs from its default; stdout stays the answer alone."""
    told = ok("status", "--model", "--json", *place(worked), log=None)
    assert told.stderr == (
        'from epoch 1 in the log, given nowhere else: learner.kind = "averaged-perceptron", learner.learning_rate = 0.5, '
        "learner.gamma = 0.25, features.bias = false, labels.max_delay = 1000.0, labels.remember = 50\n"
    )
    found = json.loads(told.stdout)
    with opened(worked) as log:
        expected = read_report(log, worked, fold=True)
    assert (found["learner"], found["model"]["digest"]) == ("averaged-perceptron", expected.model.digest)
    assert found["bounds"][0]["name"] == "Novikoff"


def test_what_is_given_must_agree_with_the_epoch(worked: Settings) -> None:
    """By flag, variable or file: a model folded under other settings would not be the log's."""
    Path("mistakebound.toml").write_text("[learner]\nlearning_rate = 0.75\n")
    refused = run("status", "--model", *place(worked), "--set=labels.remember=50", log=None)
    assert refused.exit_code == 5
    assert "learner.learning_rate is 0.75, the epoch has 0.5" in refused.stderr
    assert "labels.remember" not in refused.stderr.split("given nowhere else:")[1].split("\n")[0]


def test_status_names_the_learner_that_learned(worked: Settings) -> None:
    """Without --model too, and whatever the settings at hand would have a worker use."""
    found = json.loads(ok("status", "--json", *place(worked), "--set=learner.kind=winnow", log=None).stdout)
    assert found["learner"] == "averaged-perceptron"
    assert found["model"]["window"] is None


def test_a_log_without_an_epoch_has_no_settings_to_give(settings: Settings) -> None:
    """Status tells what it would be; a reset has nothing to follow, and still says what `run` would need."""
    with opened(settings):
        pass
    assert json.loads(ok("status", "--json", *place(settings), log=None).stdout)["learner"] == "perceptron"
    refused = run("reset", *place(settings), log=None)
    assert (refused.exit_code, "labels.max_delay: missing" in refused.stderr) == (2, True)


def test_an_epoch_of_a_newer_version_is_refused_by_name(worked: Settings) -> None:
    """A key that this version does not know decides something that it cannot do."""
    loaded = load_in_epoch(
        None, (), None, {}, 7, {"learner": {"kind": "perceptron", "future": 1}, "magic": {"a": 1}}
    )
    assert loaded.settings.learner.kind == "perceptron"
    assert str(loaded.origins["learner.kind"]) == "epoch 7"


# --- the next epoch -----------------------------------------------------------------------------------


def test_a_reset_by_flags_alone_changes_only_what_they_say(worked: Settings) -> None:
    """The plan and the epoch that begins: all else is as in the present epoch."""
    flags = [*place(worked), "--set=learner.kind=winnow"]
    plan = json.loads(ok("reset", "--json", *flags, log=None).stdout)
    assert plan["changes"] == {"learner.kind": {"before": "averaged-perceptron", "after": "winnow"}}
    assert "epoch 2 has begun" in ok("reset", "--execute", *flags, log=None).stderr
    with opened(worked) as log:
        Run(log, altered(worked, learner={**OTHER["learner"], "kind": "winnow"}))


def test_a_reset_with_what_a_worker_is_started_with_means_its_defaults_too(worked: Settings) -> None:
    """A key that was taken out of the file has its default in the next epoch, as it will have in the worker."""
    Path("mistakebound.toml").write_text("[labels]\nmax_delay = 1000\n")
    plan = json.loads(ok("reset", "--json", *place(worked), log=None).stdout)
    assert {key: each["after"] for key, each in plan["changes"].items()} == {
        "learner.kind": "perceptron",
        "learner.learning_rate": 1.0,
        "learner.gamma": None,
        "features.bias": True,
        "labels.remember": 100_000,
    }


def test_a_reset_with_what_a_worker_is_started_with_may_take_out_what_forbids_the_rest(
    settings: Settings,
) -> None:
    """The next epoch's settings are judged without those of the present one."""
    begun = altered(settings, features={"cross": "/shop"})
    with opened(begun) as log:
        Run(log, begun)
    Path("mistakebound.toml").write_text(
        '[learner]\nkind = "kernel-perceptron"\n[labels]\nmax_delay = 1000\n'
    )
    plan = json.loads(ok("reset", "--json", *place(settings), log=None).stdout)
    assert plan["changes"]["features.cross"] == {"before": "/shop", "after": None}
    refused = run(
        "reset", *place(settings), "--config=/dev/null", "--set=learner.kind=kernel-perceptron", log=None
    )
    assert refused.exit_code == 2
    assert 'features.cross = "/shop" (epoch 1)' in refused.stderr


@pytest.mark.parametrize("options", [(), ("--model",)])
def test_costs_are_told_as_they_are_set_now(settings: Settings, options: tuple[str, ...]) -> None:
    """By a flag or a file, with the model and without; a class that the epoch does not have is named."""
    with opened(settings) as log:
        work_on(log, settings)
    where = [*options, *place(settings)]
    free = json.loads(ok("status", "--json", *where, log=None).stdout)
    (mistakes, mistaken), cost = (
        (free["mistakes"], free["confusion"]["model"]),
        "labels.costs={false_positive = 3, false_negative = 3}",
    )
    assert mistakes > 0
    assert mistaken["cost"] is None

    told = json.loads(ok("status", "--json", "--set", cost, *where, log=None).stdout)
    assert told["confusion"]["model"]["cost"] == 3 * mistakes
    Path("mistakebound.toml").write_text("[labels]\ncosts = {false_positive = 2, false_negative = 2}\n")
    assert f"\ncost             {2 * mistakes} of these mistakes" in ok("status", *where, log=None).stdout
    wrong = run("status", "--set", "labels.costs={false_positve = 1}", *where, log=None)
    assert wrong.exit_code == 2
    assert "false_positve" in wrong.stderr
