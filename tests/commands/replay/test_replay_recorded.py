"""`replay` of what `record` wrote of a worker's log: the log's own numbers, or afresh, and then it says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import Run, opened, settings_for, stream

URL = "sqlite:log.db"
LEARNER = {"kind": "perceptron", "tie": "positive"}


@pytest.fixture
def log(quiet: None) -> dict[str, Any]:
    """A log of four partitions that one worker worked off in small portions; returns what `status --model` says of it."""
    settings = settings_for(
        URL,
        log={"url": URL},
        learner=LEARNER,
        labels={"max_delay": 0.05, "parking": 0.01, "remember": 20},
        batch={"max_records": 5},
    )
    with opened(settings, 4) as reached:
        for first in range(0, 120, 30):
            reached.append(stream(30, partitions=4, seed=first, first=first))
            Run(reached, settings)
    ok("record", "day.jsonl", log=URL)
    return _status(settings)


def _status(settings: Settings) -> dict[str, Any]:
    sets = [
        f"--set=learner.{key}={value}"
        for key, value in settings.learner.model_dump(exclude_unset=True).items()
    ]
    sets += [
        f"--set=labels.{key}={value}"
        for key, value in settings.labels.model_dump(mode="json", exclude_unset=True).items()
    ]
    found: dict[str, Any] = json.loads(ok("status", "--model", "--json", *sets, log=URL).stdout)
    return {name: value for name, value in found.items() if name not in ("lag", "epoch", "worker")}


def _replayed(*arguments: str) -> tuple[dict[str, Any], str]:
    result = ok("replay", "day.jsonl", "--json", "-q", *arguments, log=None)
    return json.loads(result.stdout), result.stderr


def test_a_recording_has_the_logs_numbers_whatever_is_given_for_batches(log: dict[str, Any]) -> None:
    """Every figure that `status --model` shows, the model's digest included; nothing of learner and labels is given."""
    report, told = _replayed("--set", "batch.max_records=777")

    assert {one["reason"] for one in report.pop("rejected")} == {
        "not-json"
    }  # which a log keeps in dead letters
    assert report == log
    assert log["mistakes"] > 30
    assert "replayed as recorded; learner, features, labels and messages are the recording's" in told


def test_run_afresh_it_has_other_numbers_and_says_so(log: dict[str, Any]) -> None:
    """On stderr and in the report."""
    report, told = _replayed("--afresh")

    assert report.pop("afresh") == "as asked"
    assert report != log
    assert "run afresh, not as recorded: as asked" in told


def test_another_learner_is_run_afresh_on_the_recordings_other_settings(log: dict[str, Any]) -> None:
    """What another learner would have done."""
    report, told = _replayed("--set", "learner.kind=balanced-winnow")

    assert report["learner"] == "balanced-winnow"
    assert report["afresh"].startswith("learner.kind is 'balanced-winnow', recorded 'perceptron'")
    assert report["afresh"] in told
    assert "labels." not in report["afresh"]


def test_expectations_and_comparisons_are_of_the_recorded_run(log: dict[str, Any]) -> None:
    """Other rules see the examples in the order in which their labels were applied."""
    Path("report.json").unlink(missing_ok=True)
    ok(
        "replay",
        "day.jsonl",
        "-q",
        "--report",
        "report.json",
        "--expect",
        f"mistakes == {log['mistakes']}",
        log=None,
    )
    report = json.loads(Path("report.json").read_text())

    assert report["comparators"]["learner"]["mistakes"] == log["mistakes"]
    assert report["comparators"]["majority"]["mistakes"] > 0


def test_an_altered_recording_is_told_with_its_place(log: dict[str, Any]) -> None:
    """Exit code 3; run afresh it can be."""
    lines = Path("day.jsonl").read_bytes().splitlines(keepends=True)
    applied, expired = (b'\\"outcome\\":\\"%s\\"' % outcome for outcome in (b"applied", b"expired"))
    place = next(n for n, line in enumerate(lines) if applied in line)
    lines[place] = lines[place].replace(applied, expired, 1)
    Path("day.jsonl").write_bytes(b"".join(lines))
    result = run("replay", "day.jsonl", log=None)

    assert result.exit_code == 3
    assert "the recording cannot be repeated: outcomes-" in result.stderr
    assert 'should be {"outcome":"applied"' in result.stderr
    assert ok("replay", "day.jsonl", "--afresh", log=None).exit_code == 0


def test_afresh_is_for_recordings() -> None:
    """Labelled data holds nothing that could be repeated."""
    Path("rows.csv").write_text("a,label\n1,true\n")
    assert run("replay", "rows.csv", "--afresh", log=None).exit_code == 2


def test_seeds_from_a_recording_come_in_the_order_in_which_the_worker_applied_the_labels(
    log: dict[str, Any],
) -> None:
    """As many as it applied, of which some were applied late."""
    ok("topics", "create", "--partitions", "2", log="sqlite:new.db")
    told = ok(
        "seed", "day.jsonl", "--dry-run", "--json", "--set", "labels.max_delay=0.05", log="sqlite:new.db"
    )

    assert json.loads(told.stdout)["labelled"] == log["labelled"]
