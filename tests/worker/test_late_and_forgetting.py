"""A worker that forgets, and labels that come when their examples are gone: restarts, audit, replay, status."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.commands.committed_report import read_report
from mistakebound.core.records import INPUTS, Outgoing
from mistakebound.core.replay.replay import replay_records, report_of
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.metrics import model_insight
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import (
    Recount,
    Run,
    altered,
    late_label,
    opened,
    rejected,
    settings_for,
    stream,
    written,
)

URL = "sqlite:log.db"
FLAGS = ("--set", "checkpoint.url=checkpoints")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, and no worker's log lines."""
    monkeypatch.chdir(tmp_path)
    with capture_logs():
        yield


def portion(first: int, partitions: int = 2) -> list[Outgoing]:
    """A stream with, now and then, a label of which nobody has an example any more."""
    found = stream(60, partitions=partitions, seed=first, first=first)
    for n in range(0, 60, 6):
        features: Any = {"a": n / 60, "b1": 1.0}
        found.append(late_label(f"gone{first + n}", n % 4 == 0, 1_000 + first + n, n % partitions, features))
    return sorted(found, key=lambda each: each.timestamp_ms or 0)


def settings_with(window: int | None, kind: str = "averaged-perceptron") -> Settings:
    return settings_for(
        URL,
        log={"url": URL},
        learner={"kind": kind, "window": window},
        labels={"max_delay": 0.03, "parking": 0.01, "remember": 20},
        checkpoint={"url": "checkpoints"},
        batch={"max_records": 16},
    )


def worked(log: Log, settings: Settings) -> Run:
    """Two runs; the second starts from the first one's checkpoint."""
    log.append(portion(0))
    Run(log, settings)
    assert written(Path("checkpoints"))
    log.append(portion(60))
    return Run(log, settings)


@pytest.mark.parametrize(
    ("kind", "window"),
    [("averaged-perceptron", 20), ("perceptron", 5), ("balanced-winnow", 23), ("averaged-perceptron", None)],
)
def test_restarts_audit_and_replay_agree_to_the_bit(kind: str, window: int | None) -> None:
    """A checkpoint that was gone on from, the fold of the whole log, an audit and a replay of the inputs."""
    settings = settings_with(window, kind)
    with opened(settings, 2) as log:
        held = worked(log, settings).held
        recount = Recount(log, settings)
        inputs = [record for topic in INPUTS for p in (0, 1) for record in log.read(topic, p, 0)]
        told = read_report(log, settings, fold=True)
    assert rejected(Path("checkpoints")) == []
    assert recount.digest == held.state.model.digest()
    late = [each for each in recount.decisions if each.outcome == "applied_late"]
    assert len(late) == sum(each.life.labels["applied_late"] for each in recount.tallies) > 10
    forgetting = held.state.model.window
    assert (forgetting is not None and forgetting.forgot) is (window is not None)
    replayed = report_of(replay_records(inputs, settings, 2))
    assert told.to_json() == report_of(held.state).to_json()
    # Several partitions meet in other batches; what each of them counts does not depend on that.
    assert (replayed.labels, replayed.example_outcomes) == (told.labels, told.example_outcomes)
    found = json.loads(ok("audit", "--json", *FLAGS, log=URL).stdout)
    assert found["differences"] == {}
    assert found["checked"]["checkpoint models"] == 2


def test_a_replay_of_one_partition_is_the_workers_run_to_the_byte() -> None:
    """With late labels, and with a window: from a recording of the worker's own log."""
    settings = settings_with(12)
    with opened(settings, 1) as log:
        log.append(portion(0, 1))
        held = Run(log, settings).held
        inputs = [record for topic in INPUTS for record in log.read(topic, 0, 0)]
    assert report_of(replay_records(inputs, settings, 1)).to_json() == report_of(held.state).to_json()
    assert held.state.ledgers[0].tallies.life.labels["applied_late"] > 3


def test_labels_parked_with_their_content_survive_a_restart_without_checkpoints() -> None:
    """The decision to park them holds what they carry."""
    settings = altered(settings_with(None), checkpoint={"url": ""})
    with opened(settings, 1) as log:
        log.append([late_label("gone", True, 1_000, 0, {"a": 1.0})])
        assert Run(log, settings).held.state.ledgers[0].parked["gone"].carried is not None
        log.append(stream(5, first=100))
        held = Run(log, settings).held
    tallies = held.state.ledgers[0].tallies.life
    assert (tallies.labels["applied_late"], tallies.labels["unmatched"]) == (1, 0)


def test_status_and_metrics_say_how_many_updates_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window always, and from the folded model how many of each partition."""
    monkeypatch.setattr(model_insight, "EVERY_S", 0.0)
    monkeypatch.setattr(model_insight, "SHARE", 1.0)
    settings = settings_with(5)
    with opened(settings, 2) as log:
        done = worked(log, settings)
    assert done.metric("mistakebound_learner_window ") == 5
    assert done.metric("mistakebound_counting_updates ") == 10
    named = ("--set", "learner.window=5", *_labels())
    assert "the last 5 updates of each partition count\n" in ok("status", *named, log=URL).stdout
    assert "updates of each partition count; now 5, 5\n" in ok("status", "--model", *named, log=URL).stdout


def test_another_window_is_another_epoch() -> None:
    """A worker that would forget otherwise is refused, and told what it takes."""
    settings = settings_with(5)
    with opened(settings, 2) as log:
        worked(log, settings)
    refused = run("status", "--model", "--set", "learner.window=6", *_labels(), log=URL)
    assert refused.exit_code == 5
    assert "learner.window is 6, the epoch has 5" in refused.stderr


def _labels() -> tuple[str, ...]:
    pairs = ("labels.max_delay=0.03", "labels.parking=0.01", "labels.remember=20")
    return tuple(each for pair in pairs for each in ("--set", pair))
