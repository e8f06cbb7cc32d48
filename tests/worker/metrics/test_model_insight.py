"""Theorems on the metrics page, in `status` and in the summary: beside the count, while the worker runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands.committed_report import read_report
from mistakebound.commands.render_report import render_report
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.core.theorems.changes import proved_changes
from mistakebound.core.theorems.claims import Bound
from mistakebound.settings import Settings
from mistakebound.worker.metrics import model_insight
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import Run, example, label, opened, settings_for

DECLARED = {"kind": "perceptron", "gamma": 0.5}
ROWS = [Row(str(n), {"a": -1.0 if n % 2 else 1.0}, n % 2 == 0) for n in range(6)]


def replayed(rows: list[Row], **sections: Any) -> State:
    settings = Settings.model_validate({"features": {"bias": False}, **sections})
    return replay_rows(rows, settings, 1)


class _Page:
    """A metrics page, and a clock that is told the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.metrics = Metrics(["true", "false"], "perceptron", "digest")
        self.learning = ModelInsight(self.metrics, lambda: self.now)

    def samples(self) -> dict[str, float]:
        page = self.metrics.page()[0].decode()
        names = ("mistakebound_mistake_bound{", "mistakebound_bounded_events{", "mistakebound_margin_upper")
        lines = [line for line in page.splitlines() if line.startswith(names)]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_bounds_and_certificate_come_at_once_and_then_every_two_seconds() -> None:
    """One update of length 1, declared margin 1/2: 1 <= 4, and no margin is above 1."""
    page = _Page()
    state = replayed(ROWS, learner=DECLARED)
    page.learning.measure(state)
    assert page.samples() == {
        'mistakebound_mistake_bound{of="updates",theorem="Novikoff"}': 4,
        'mistakebound_mistake_bound{of="mistakes",theorem="Novikoff"}': 4,
        'mistakebound_bounded_events{of="updates",theorem="Novikoff"}': 1,
        'mistakebound_bounded_events{of="mistakes",theorem="Novikoff"}': 1,
        "mistakebound_margin_upper_bound": 1,
        "mistakebound_margin_upper_bound_window": 1,
    }
    state.model.labelled(0)
    state.model.learn(0, (("a", 3.0),), False, True)
    page.now = 1.9
    page.learning.measure(state)
    assert page.samples()["mistakebound_margin_upper_bound"] == 1
    page.now = 2.0
    page.learning.measure(state)
    found = page.samples()
    assert found["mistakebound_margin_upper_bound"] == 1  # 1, then -3: a length of 2 after 2 updates
    assert found['mistakebound_bounded_events{of="updates",theorem="Novikoff"}'] == 2
    assert found['mistakebound_mistake_bound{of="updates",theorem="Novikoff"}'] == 36


def test_a_slow_measurement_is_made_less_often() -> None:
    """At most a twentieth of the time goes to it."""
    page = _Page()
    state = replayed(ROWS, learner=DECLARED)
    times = iter([0.0, 1.0])
    ModelInsight(page.metrics, lambda: next(times)).measure(state)
    slow = ModelInsight(page.metrics, lambda: page.now)
    calls = 0

    def certainly() -> Any:
        nonlocal calls
        calls += 1
        page.now += 1.0
        return {"a": 1.0}

    state.model.learner.weights = certainly  # type: ignore[method-assign]
    for second in range(21):
        page.now = max(page.now, float(second))
        slow.measure(state)
        state.model.updates[0] += 1
    assert calls == 2


def test_what_was_said_is_taken_back_when_nothing_is_served() -> None:
    """A page must not go on stating a bound of a model that is given up."""
    page = _Page()
    page.learning.measure(replayed(ROWS, learner=DECLARED))
    page.learning.forget()
    assert page.samples() == {}
    page.learning.measure(replayed(ROWS, learner=DECLARED))
    assert len(page.samples()) == 6


def test_the_version_space_is_a_gauge() -> None:
    """Two variables, one positive example with the first alone: `true` and `x0` are left of four."""
    page = _Page()
    learner = {"kind": "halving", "concepts": "monotone-conjunctions", "variables": 2}
    page.learning.measure(replayed([Row("1", {"0": 1}, True)], learner=learner))
    assert "\nmistakebound_version_space_concepts 2.0" in page.metrics.page()[0].decode()


def test_a_running_worker_shows_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the loop itself, on a log; here at every turn of it."""
    monkeypatch.setattr(model_insight, "EVERY_S", 0.0)
    monkeypatch.setattr(model_insight, "SHARE", 1.0)
    chosen = settings_for(learner=DECLARED, features={"bias": False})
    with opened(chosen) as log:
        log.append([example(n, {"a": 1.0}, 1_000 + n) for n in range(3)])
        log.append([label(n, True, 2_000 + n) for n in range(3)])
        done = Run(log, chosen)
        told = read_report(log, chosen, fold=True)
        unfolded = read_report(log, chosen, fold=False)
    assert done.metric('mistakebound_mistake_bound{of="mistakes",theorem="Novikoff"}') == 12
    assert done.metric('mistakebound_bounded_events{of="mistakes",theorem="Novikoff"}') == 3
    assert done.metric("mistakebound_margin_upper_bound") == 1
    assert done.metric("mistakebound_declared_margin") == 0.5
    assert told.bounds == report_of(done.held.state).bounds
    assert [(bound.of, bound.count, bound.value) for bound in told.bounds] == [
        ("updates", 1, 4),
        ("mistakes", 3, 12),
    ]
    assert told.margin_upper_bound == 1
    assert (unfolded.bounds, unfolded.margin_upper_bound) == ((), None)


def test_the_summary_spells_bounds_out() -> None:
    """As the theorem is read; and what it means where it does not hold."""
    report: Report = report_of(replayed(ROWS, learner={**DECLARED, "gamma": 0.126}))
    text = render_report(report)
    assert "bound            updates 1 <= 62.99 (Novikoff, R = 1, gamma = 0.126)" in text
    assert "bound            mistakes 1 <= 62.99 (Novikoff, R = 1, gamma = 0.126)" in text
    assert "margin           at most 1, whatever separates the updates" in text
    against = [Row(str(n), {"a": 1.0}, n % 2 == 0) for n in range(6)]
    text = render_report(report_of(replayed(against, learner={**DECLARED, "gamma": 1.0})))
    assert "updates 6 > 1: the assumptions do not hold (Novikoff, R = 1, gamma = 1)" in text
    assert "margin           at most 0, whatever separates the updates" in text


def test_the_report_of_a_replay_holds_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`replay --report -`: name, value, count, whether it holds, of what, and the numbers it assumes."""
    monkeypatch.chdir(tmp_path)
    rows = [{"features": row.features, "label": row.label} for row in ROWS]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = ["--set", "features.bias=false", "--set", "learner.kind=perceptron", "--set", "learner.gamma=0.5"]
    told = json.loads(ok("replay", "rows.jsonl", "--quiet", "--report", "-", *args, log=None).stdout)
    assert told["bounds"][0] == {
        "name": "Novikoff",
        "value": 4.0,
        "count": 1,
        "holds": True,
        "of": "updates",
        "assumes": "R = 1, gamma = 0.5",
    }
    assert told["margin_upper_bound"] == 1


def test_a_margin_of_zero_is_refused_where_nothing_would_be_learned() -> None:
    """The first score is 0, which is not below 0: it would never update."""
    result = run("config", "check", "--set", "learner.kind=margin-perceptron", log=None)
    assert result.exit_code == 2
    assert "learner.margin" in result.output


def test_a_bound_at_exactly_its_count_holds() -> None:
    """Rounding is allowed for, one more mistake is not."""
    rows = [Row(str(n), {f"x{n}": 1.0}, True) for n in range(3)]
    bound: Bound = report_of(replayed(rows, learner={**DECLARED, "gamma": 3**-0.5})).bounds[0]
    assert (bound.count, bound.holds) == (3, True)
    bound = report_of(replayed(rows, learner={**DECLARED, "gamma": 0.578})).bounds[0]
    assert (bound.count, bound.holds) == (3, False)


def test_proved_changes_are_shown_by_partition_where_a_margin_is_declared() -> None:
    """From the first measurement on, at 0; gone with the model."""
    page = _Page()

    def shown() -> list[str]:
        text = page.metrics.page()[0].decode()
        return [line for line in text.splitlines() if line.startswith("mistakebound_proved_changes{")]

    page.learning.measure(replayed(ROWS))
    assert shown() == []
    page.learning.forget()
    state = replayed(ROWS, learner=DECLARED)
    page.learning.measure(state)
    assert shown() == ['mistakebound_proved_changes{partition="0"} 0.0']
    for positive in (False, True, False, True):
        state.model.learn(0, (("a", 1.0),), positive, not positive)
    page.now = 20.0
    page.learning.measure(state)
    assert shown() == ['mistakebound_proved_changes{partition="0"} 2.0']
    page.learning.forget()
    assert shown() == []


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_worker_and_status_prove_the_same_changes(tmp_path: Path, partitions: int) -> None:
    """Of labels turned round: while it runs, after a restart from a checkpoint, and from the log alone."""
    settings = settings_for(
        f"sqlite:{tmp_path / 'log.db'}",
        learner={"kind": "margin-perceptron", "margin": 9.0, "gamma": 0.5},
        checkpoint={"url": str(tmp_path / "checkpoints")},
    )
    with opened(settings, partitions) as log:
        for first in (0, 60):
            for n in range(first, first + 60):
                log.append([example(n, {"a": n % 2 * 2.0 - 1.0}, n, partitions)])
                log.append([label(n, (n % 2 == 0) is (first > 0), n, partitions)])
            run = Run(log, settings)
        live = proved_changes(run.held.state.model)
        assert live is not None
        assert live.count >= 1
        again = Run(log, settings)
        assert proved_changes(again.held.state.model) == live
        assert read_report(log, settings, fold=True).proved_changes == live
    page = _Page()
    page.learning.measure(again.held.state)
    text = page.metrics.page()[0].decode()
    for partition, count in enumerate(live.by_partition):
        assert f'mistakebound_proved_changes{{partition="{partition}"}} {count:.1f}\n' in text
