"""Where the status page's numbers come from: history, notices, explained mistakes, snapshots."""

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mistakebound.core.model.fold import Fold
from mistakebound.core.records import INPUTS
from mistakebound.core.replay.replay import Row, as_stream, fresh, replay_rows
from mistakebound.core.reporting.report import ModelSummary, report
from mistakebound.core.reporting.status import CheckpointStatus, History, PartitionStatus
from mistakebound.core.step.explain import ExplainedMistake
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.core.theorems.claims import Bound, why_none
from mistakebound.settings import Settings
from mistakebound.worker.events import LagMeasured, StateDropped
from mistakebound.worker.health import Health
from mistakebound.worker.http.drift import Drift, drift
from mistakebound.worker.http.first_commands import first_commands
from mistakebound.worker.http.history import RINGS, RecentHistory
from mistakebound.worker.http.notices import duration, notices
from mistakebound.worker.http.snapshot import EVERY_S, Snapshots
from mistakebound.worker.metrics.metrics import Metrics
from tests.commands.support.command_line import ENVIRON
from tests.worker.support.events import committed, settled
from tests.worker.support.page_steps import READY, told_of
from tests.worker.support.working import Run, opened

HELD = (PartitionStatus(0, 900, 100, 10, 800, 0, 90.0),)


def settings_of(**sections: Any) -> Settings:
    return Settings.model_validate({"learner": {"kind": "perceptron"}, **sections})


def facts(labelled: int = 1, mistakes: int = 0, examples: int = 0) -> StepFacts:
    wrong = {"true": mistakes} if mistakes else {}
    return StepFacts(labels={"applied": labelled}, mistakes=wrong, margins=[0.0] * examples)


# --- history ------------------------------------------------------------------------------------------


def test_a_ring_adds_up_what_falls_into_one_bucket_and_leaves_empty_ones_out() -> None:
    """Buckets begin at multiples of their length."""
    recent = RecentHistory()
    for at_s, labelled in ((1_000.5, 1), (1_001.9, 2), (1_002.0, 4), (1_100.0, 8)):
        recent.add(at_s, facts(labelled, 1))
    recent.add(1_101.0, facts(0))
    fine, minutes, _ = recent.histories(1_101)
    assert (fine.at, fine.labelled, fine.mistakes) == ((1_000, 1_002, 1_100), (3, 4, 8), (2, 1, 1))
    assert (minutes.at, minutes.labelled) == ((960, 1_080), (7, 8))


def test_a_ring_is_bounded_whatever_happens() -> None:
    """An event every 30 s for three days: each ring keeps its span, and not a bucket more."""
    recent, end_s = RecentHistory(), 3 * 86_400
    for at_s in range(0, end_s, 30):
        recent.add(at_s, facts())
    for (seconds, kept), told in zip(RINGS, recent.histories(end_s), strict=True):
        assert len(told.at) <= kept
        assert told.at[0] >= end_s - seconds * kept
        assert sum(told.labelled) == pytest.approx(seconds * kept / 30, rel=0.06)


def test_what_a_ring_holds_grows_old_without_new_events() -> None:
    """A silent stream does not show yesterday as today."""
    recent = RecentHistory()
    recent.add(1_000, facts())
    assert [len(told.at) for told in recent.histories(1_000 + 700)] == [0, 1, 1]


def test_labels_that_brought_their_own_example_count_as_labelled() -> None:
    """As they do in the report: the prediction that they carry was judged."""
    recent = RecentHistory()
    recent.add(1_000, StepFacts(labels={"applied": 2, "applied_late": 3, "expired": 4}))
    assert recent.histories(1_000)[0].labelled == (5,)


def test_a_clock_that_was_set_back_loses_nothing() -> None:
    """What happens meanwhile is added to the newest bucket."""
    recent = RecentHistory()
    recent.add(2_000, facts(1))
    recent.add(1_000, facts(1))
    (fine, *_) = recent.histories(2_000)
    assert (fine.at, fine.labelled) == ((2_000,), (2,))


# --- notices ------------------------------------------------------------------------------------------


def texts(health: Health = READY, **changed: Any) -> list[tuple[str, str]]:
    """(level, text) of each notice, of a worker of which all is well but for what is `changed`."""
    given: dict[str, Any] = {
        "bounds": (), "margins": (None, None, None), "partitions": (), "history": RecentHistory().histories(0),
        "checkpoint": None, "started_s": 1_940.0, "now_s": 2_000.0,
        "report": report([], "perceptron", ModelSummary(0, ())),
    }  # fmt: skip
    return [(each.level, each.text) for each in notices(health, **{**given, **changed})]


def lived(*buckets: tuple[float, int, int, int]) -> tuple[History, ...]:
    """A history of (time, examples, labelled, mistakes)."""
    recent = RecentHistory()
    for at_s, examples, labelled, mistakes in buckets:
        recent.add(at_s, facts(labelled, mistakes, examples))
    return recent.histories(2_000)


def test_a_worker_of_which_all_is_well_has_nothing_to_say() -> None:
    """No notice without a reason, also before anything happened."""
    assert texts() == []
    assert texts(history=lived((1_900, 500, 500, 50), (1_990, 500, 500, 60)), partitions=HELD) == []


def test_labels_that_cannot_meet_their_examples_are_an_alarm() -> None:
    """With the reason for which the worker is not ready."""
    health = dataclasses.replace(
        READY, ready=False, reason="at least 40 labels lie apart", misplaced_labels=40
    )
    assert texts(health) == [("alarm", "At least 40 labels lie apart.")]


def test_a_drift_is_told_with_both_rates() -> None:
    """Mistakes in the last 10 s beyond what the time before makes likely."""
    (level, text), *others = texts(history=lived((1_900, 500, 500, 50), (1_990, 100, 100, 60)))
    assert (level, others) == ("alarm", [])
    assert "60 % of the labels of the last 10 s, against 10 % before" in text


def test_a_drift_of_a_slow_stream_takes_a_minute_to_be_told() -> None:
    """One label in two seconds: the change is where the mistakes began."""
    slow = [(1_950.0 + 2 * n, 1, 1, 1) for n in range(25)]
    ((_, text),) = texts(history=lived((1_900, 100, 100, 5), *slow))
    assert "100 % of the labels of the last 50 s, against 5 % before" in text


@pytest.mark.parametrize("buckets", [[(1_990, 100, 100, 60)], [(1_900, 500, 500, 50), (1_990, 10, 10, 10)]])
def test_a_drift_is_not_told_from_a_handful_of_labels(buckets: list[tuple[float, int, int, int]]) -> None:
    """Nor without a time before to compare with."""
    assert texts(history=lived(*buckets)) == []


def stream(
    *phases: tuple[float, float], per_s: int = 5, seed: int = 0
) -> Iterator[tuple[float, Drift | None]]:
    """(time, the drift seen then), every 20 s, of a stream of phases of (seconds, mistake rate)."""
    random, recent, now = Random(seed), RecentHistory(), 0.0
    for seconds, rate in phases:
        for _ in range(int(seconds / 2)):
            mistakes = sum(random.random() < rate for _ in range(2 * per_s))
            recent.add(now, facts(2 * per_s, mistakes))
            now += 2
            if now % 20 == 0:
                yield now, drift(recent.histories(now))


def test_a_drift_is_told_for_as_long_as_it_lasts_and_no_longer() -> None:
    """A rate of 9 % becomes 49 % after ten minutes and stays for five hours, longer than two of the three rings reach;
    then the model has learned anew. What came before the change is all that it is compared with."""
    told = list(stream((600, 0.09), (18_000, 0.49), (1_200, 0.09)))
    assert [at for at, found in told if at <= 600 and found] == []
    during = [(at, found) for at, found in told if 630 <= at <= 18_600]
    assert [at for at, found in during if found is None] == []
    for at, found in during:
        assert found is not None
        assert found.mistakes_before / found.labelled_before < 0.13, at
        assert found.mistakes / found.labelled > 0.43, at
        assert abs(found.since_s - 600) <= 600, at
    assert [at for at, found in told if at >= 18_660 and found] == []


def test_one_change_is_told_as_one() -> None:
    """From 20 to 80 %: at once, and ever after with the time at which it happened."""
    told = dict(stream((1_000, 0.2), (3_000, 0.8)))
    found = [one for at, one in told.items() if at > 1_020]
    assert {None if one is None else one.since_s for one in found} <= {1_000, 1_020}, (
        "to a bucket of each ring"
    )


def test_a_rate_that_creeps_up_is_told_long_before_its_end() -> None:
    """From 5 to 40 % within an hour, after half an hour of quiet: once it has doubled, the page goes on saying so."""
    ramp = [(60.0, 0.05 + 0.35 * minute / 60) for minute in range(60)]
    told = dict(stream((1_800, 0.05), *ramp, (1_800, 0.4)))
    assert [at for at, found in told.items() if at <= 1_800 and found] == []
    assert all(found for at, found in told.items() if at >= 3_600)


def test_a_second_drift_is_told_after_a_first_one_is_over() -> None:
    """The first is part of what came before; the change to the second is still seen."""
    told = dict(stream((600, 0.05), (300, 0.5), (600, 0.05), (300, 0.5)))
    assert [told[at] for at in (1_020, 1_200, 1_480)] == [None, None, None]
    assert all(told[at] is not None for at in (720, 880, 1_620, 1_780))


@pytest.mark.parametrize(("rate", "per_s", "seed"), [(0.02, 5, 1), (0.1, 20, 2), (0.3, 1, 3), (0.5, 5, 4)])
def test_a_steady_rate_is_no_drift_for_hours(rate: float, per_s: int, seed: int) -> None:
    """Nor is a rate that falls, as that of a model which learns."""
    hours = stream((600, min(0.6, 3 * rate)), (7_200, rate), per_s=per_s, seed=seed)
    assert [at for at, found in hours if found] == []


def test_a_rise_that_is_small_is_none_however_many_labels_prove_it() -> None:
    """From 10 to 12 % of half a million labels."""
    assert drift(lived((1_500, 0, 250_000, 25_000), (1_900, 0, 250_000, 30_000))) is None
    assert drift(lived((1_500, 0, 250_000, 25_000), (1_900, 0, 250_000, 35_000))) is not None


def test_a_reference_of_few_labels_without_a_mistake_proves_little() -> None:
    """Twenty labels that were right, then three mistakes in twenty: that may be chance."""
    assert drift(lived((1_900, 20, 20, 0), (1_990, 20, 20, 3))) is None


def test_labels_that_stop_are_a_warning() -> None:
    """How long, how many examples came meanwhile, and how many wait."""
    history = lived((1_900, 100, 100, 1), (1_950, 400, 0, 0), (1_990, 400, 0, 0))
    assert texts(history=history, partitions=HELD) == [
        ("warning", "No label for 98 s, while 800 examples came; 800 examples wait, the oldest for 90 s.")
    ]


def test_the_age_of_what_waits_is_told_by_both_clocks_where_they_differ() -> None:
    """No record came for 22 minutes: by record time the oldest example is a second old."""
    idle = (PartitionStatus(0, 900, 100, 10, 800, 0, 1.0, 2_000 - 1_320),)
    history = lived((1_900, 100, 100, 1), (1_990, 400, 0, 0))
    ((_, text),) = texts(history=history, partitions=idle)
    assert text.endswith("800 examples wait, the oldest for 22 min by the clock and 1 s by record time.")


def test_labels_that_never_came_may_only_be_late() -> None:
    """No more than information: labels may take days."""
    found = texts(history=lived((1_950, 400, 0, 0)), partitions=HELD)
    assert found == [
        ("info", "No label in the 60 s since this worker started; 800 examples wait, the oldest for 90 s.")
    ]


def test_labels_that_stopped_an_hour_ago_are_still_missed() -> None:
    """The coarser rings remember the last label when the finest has forgotten it."""
    recent = RecentHistory()
    recent.add(1_000, facts(5))
    recent.add(4_590, facts(0, 0, 100))
    ((level, text),) = texts(history=recent.histories(4_600), partitions=HELD, now_s=4_600)
    assert (level, text[:22]) == ("warning", "No label for 60 min, w")


def test_a_bound_that_is_exceeded_comes_first() -> None:
    """The declaration is refuted; health is a warning beside it."""
    bound = Bound("Novikoff", 25.0, 26, False, "updates", "R = 1, gamma = 0.2")
    restoring = Health(True, False, "the worker is restoring", "restoring", 0.0, ())
    found = texts(restoring, bounds=(bound,), margins=(0.2, None, 0.1))
    assert [level for level, _ in found] == ["alarm", "warning", "warning"]
    assert found[0][1].startswith("26 updates exceed the Novikoff bound of 25")
    assert found[1][1] == "The worker is restoring."
    assert "no separator has the declared margin 0.2" in found[2][1]


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ((0.2, 0.1, None), "The updates prove that no separator has the declared margin 0.2; the largest possible is 0.1."),
        ((0.2, 0.1, 0.05), "The updates prove"),
        ((0.2, 0.3, 0.1), "The newest updates prove"),
        ((0.2, 0.2 * (1 - 1e-15), 0.2), None),
        ((None, 0.1, 0.1), None),
    ],
)  # fmt: skip
def test_a_certificate_below_the_declared_margin_is_told_whichever_updates_it_is_of(
    margins: tuple[float | None, ...], said: str | None
) -> None:
    """Kernels and many classes have none of the newest updates; rounding alone refutes nothing."""
    found = [text for _, text in texts(margins=margins)]
    assert found == [] if said is None else (len(found) == 1 and found[0].startswith(said))


def test_a_worker_tells_of_a_margin_that_its_updates_refute() -> None:
    """A kernel learner, whose only certificate is of all updates, on one point with both labels."""
    settings = settings_of(learner={"kind": "kernel-perceptron", "gamma": 0.9})
    rows = [Row(str(n), {"a": 1.0}, n % 2 == 0) for n in range(6)]
    told = told_of(settings, rows)
    assert told.worker.window_margin_upper_bound is None
    assert any("no separator has the declared margin 0.9" in each.text for each in told.worker.notices)


def test_a_proved_change_is_told_while_it_is_among_the_newest_updates() -> None:
    """With its stretch. Later the count alone is left."""
    settings = Settings.model_validate(
        {"learner": {"kind": "margin-perceptron", "margin": 99.0, "gamma": 0.9}, "features": {"bias": False}}
    )
    rows = [Row(str(n), {"a": 1.0}, n < 9) for n in range(40)]
    told = told_of(settings, rows)
    assert told.proved_changes.count == 1
    (change,) = told.proved_changes.newest
    text = f"no separator of the declared margin fits updates 1 to {change.update} of partition 0"
    assert [one.level for one in told.worker.notices if text in one.text] == ["warning"]

    more = [Row(f"{n}", {"a": 1.0, f"b{n}": 3.0}, False) for n in range(40, 150)]
    later = told_of(settings, [*rows, *more])
    assert later.model.updates[0] > change.update + 100
    assert later.proved_changes.count >= 1
    assert [one for one in later.worker.notices if text in one.text] == []


def test_checkpoints_that_fail_are_told_while_updates_hang_on_them() -> None:
    """A failure that the next one made good is past."""
    failing = CheckpointStatus(None, 0, 5, 2)
    ((level, text),) = texts(checkpoint=failing)
    assert (level, text[:13]) == ("warning", "2 checkpoints")
    assert texts(checkpoint=replace(failing, pending_updates=0)) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (604_800, "7 d"), (-3, "0 s")],
)
def test_durations_are_said_in_two_figures_or_three(seconds: float, text: str) -> None:
    """As a person says it."""
    assert duration(seconds) == text


# --- mistakes -----------------------------------------------------------------------------------------

OPPOSITES = [Row("up", {"a": 1.0, "b": 2.0}, True), Row("down", {"a": 1.0, "b": 2.0}, False)]


def test_contributions_are_what_the_model_had_before_it_learned() -> None:
    """After (1, 2, BIAS 1) was promoted, `down` scores 1 + 4 + 1 for the wrong class."""
    newest, first = told_of(settings_of(), OPPOSITES).worker.mistakes
    assert (first.id, first.lead, first.terms) == ("up", 0.0, ())
    assert (newest.id, newest.predicted, newest.label, newest.lead) == ("down", True, False, 6.0)
    assert [(term.name, term.value, term.contribution) for term in newest.terms] == [
        ("b", 2.0, 4.0),
        ("a", 1.0, 1.0),
        ("BIAS", 1.0, 1.0),
    ]


def test_the_averaged_perceptron_is_explained_by_the_average_that_it_predicts_with() -> None:
    """The lead is the size of the published score: (T + 1) theta - kappa with T = 1 label known."""
    settings = settings_of(learner={"kind": "averaged-perceptron"})
    newest = told_of(settings, OPPOSITES).worker.mistakes[0]
    assert newest.lead == 6.0  # (1 + 1) * (1, 2, 1) - 1 * (1, 2, 1), on (1, 2, 1)


def test_a_threshold_is_told_apart_from_the_features() -> None:
    """Winnow: the score without any feature is -threshold."""
    settings = settings_of(learner={"kind": "winnow", "threshold": 5.0}, features={"bias": False})
    (one,) = told_of(settings, [Row("x", {"a": 2.0}, True)]).worker.mistakes
    assert (one.lead, one.offset, one.terms[0].contribution) == (3.0, 5.0, -2.0)


def test_with_many_classes_the_lead_is_over_the_true_one() -> None:
    """What speaks for both classes alike speaks for neither."""
    settings = settings_of(labels={"classes": ["ape", "bee", "cat"]})
    rows = [Row("1", {"a": 1.0}, "bee"), Row("2", {"a": 1.0}, "cat")]
    newest = told_of(settings, rows).worker.mistakes[0]
    assert (newest.predicted, newest.label, newest.lead) == ("bee", "cat", 2.0)  # 1 for `a`, 1 for BIAS


def test_a_costly_mistake_is_told_without_contributions() -> None:
    """Explaining never takes more scores than a step allows; of very wide examples the first features are told."""
    wide = Row("wide", {f"f{n}": 1.0 for n in range(2_000)}, True)
    (one,) = told_of(settings_of(), [wide]).worker.mistakes
    assert (one.lead, one.features, len(one.terms)) == (None, 2_001, 8)


def test_each_partition_tells_its_first_mistakes_and_those_that_it_tells_are_taken_apart() -> None:
    """One step over two partitions, each wrong forty times: ten of each, all with contributions."""
    settings, merge = settings_of(learner={"kind": "perceptron", "tie": "negative"}), Merge((0, 1))
    wide = {f"f{n}": 1.0 for n in range(40)}
    rows = (Row(str(n), {**wide, f"own{n}": float(n)}, n // 2 % 2 == 0) for n in range(160))
    merge.add(as_stream(rows, settings, 2, 0))
    done = step(fresh(settings, 2), merge, {(topic, p) for topic in INPUTS for p in (0, 1)}, 1_000, 1_000)
    assert done is not None
    told = done.facts.explained_mistakes
    assert [one.partition for one in told] == [0] * 10 + [1] * 10
    assert all(one.lead is not None for one in told)


def test_explaining_changes_nothing_else() -> None:
    """The same steps, with and without: the same report and digest."""
    rows = [Row(str(n), {"a": (n % 7) - 3.0, "b": (n % 3) - 1.0}, n % 2 == 0) for n in range(60)]
    with_it, without = (told_of(settings_of(), rows, explain=most, delay=3) for most in (1_000, 0))
    assert replace(with_it, worker=None) == replace(without, worker=None)
    assert with_it.worker.mistakes
    assert without.worker.mistakes == ()


# --- classes and weights --------------------------------------------------------------------------------


def test_the_two_kinds_of_mistake_are_counted_apart() -> None:
    """Three false alarms and a miss of five and four labels."""
    settings = settings_of(learner={"kind": "perceptron", "tie": "positive"})
    said = [False, True, False, True, True, False, True, False, True]
    told = told_of(settings, [Row(str(n), {f"f{n}": 1.0}, each) for n, each in enumerate(said)])
    judged = {(each.actual, each.predicted): (each.count, each.labelled) for each in told.worker.judged}
    assert sum(count for count, _ in judged.values()) == told.labelled == 9
    wrong = judged[("false", "true")][0] + judged[("true", "false")][0]
    assert wrong == told.mistakes
    assert {labelled for (actual, _), (_, labelled) in judged.items() if actual == "true"} == {5}
    assert {labelled for (actual, _), (_, labelled) in judged.items() if actual == "false"} == {4}
    assert told.worker.classes == (True, False)


def test_pairs_of_open_classes_do_not_grow_without_end() -> None:
    """A thousand classes could make a million pairs; what is counted of them is bounded, and the labels are all counted."""
    snapshots = Snapshots("perceptron", clock=lambda: 5.0)
    for actual in range(1_000):
        pairs = {(f'"{actual}"', f'"{predicted}"'): 1 for predicted in range(10)}
        snapshots.observe(committed(StepFacts(evaluations=pairs)))
    snapshots.observe(StateDropped())
    judged = snapshots.newest.judged
    assert len(judged) == 100
    assert {each.labelled for each in judged} == {10}


@pytest.mark.parametrize("classes", [None, ["ape", "bee", "cat"]])
def test_the_weights_shown_of_an_averaged_learner_are_those_that_it_scores_with(classes: Any) -> None:
    """As the explanations beside them: a contribution is the weight times the value."""
    labels: dict[str, Any] = {} if classes is None else {"classes": classes}
    settings = settings_of(learner={"kind": "averaged-perceptron", "learning_rate": 0.5}, labels=labels)
    spelled = classes or [True, False]
    rows = [Row(str(n), {"a": (n % 5) - 2.0, "b": 1.0}, spelled[n % len(spelled)]) for n in range(20)]
    told = told_of(settings, rows)
    state = replay_rows(rows, settings, 1)
    shown = {each.name: each.value for each in told.worker.hypothesis.top}
    score = state.model.score(state.model.features(b'{"a": 3}'))
    if classes is None:
        assert 3 * shown["a"] + shown["BIAS"] == pytest.approx(score)
    else:
        assert [3 * shown[f"{each}/a"] + shown[f"{each}/BIAS"] for each in classes] == pytest.approx(score)
    assert "averaged" in told.worker.hypothesis.what


@pytest.mark.parametrize(("kind", "initial"), [("winnow", 0.5), ("balanced-winnow", 0.0)])
def test_weights_that_are_multiplied_are_told_with_their_exponent(kind: str, initial: float) -> None:
    """A weight of 2e-8 beside one of 3 is no bar on a linear scale: the largest are those that moved furthest."""
    at_zero = {"threshold": 0.0} if kind == "winnow" else {}
    settings = settings_of(learner={"kind": kind, "eta": 2.0, "initial_weight": 0.5, **at_zero})
    rows = [Row(str(n), {"down": 4.0, "up": 0.25}, False) for n in range(4)]
    told = told_of(settings, rows).worker.hypothesis
    assert told.initial == initial
    assert [each.name for each in told.top][:2] == ["down", "BIAS"]
    for each in told.top:
        assert each.theta is not None
        grown = 0.5 * exp(2.0 * each.theta)
        shrunk = 0.5 * exp(-2.0 * each.theta) if initial == 0.0 else 0.0
        assert each.value == pytest.approx(grown - shrunk)


def test_what_was_struck_out_for_good_is_not_among_the_largest() -> None:
    """Its exponent is minus infinity, which JSON cannot say."""
    learner = {"kind": "littlestone-winnow", "threshold": 1.0, "demotion": "zero"}
    settings = settings_of(learner=learner, features={"bias": False})
    rows = [Row("1", {"a": 1, "b": 1}, False), Row("2", {"c": 1}, True)]
    told = told_of(settings, rows).worker.hypothesis
    assert {each.name: each.theta for each in told.top} == {"c": 1.0}
    assert told.initial == 1.0


# --- the first messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"messages": {"id": "/payment/id", "features": "/payment/features", "label": "/fraud"},
         "topics": {"examples": "payments", "labels": "charge backs"}},
        {"messages": {"id": "/data/id", "features": "/data"}},
        {"labels": {"positive": "it's bad", "negative": "good"}},
        {"labels": {"classes": [1, 2, 3]}, "log": {"url": "sqlite:log.db", "prefix": "t."}},
        {"labels": {"classes": "open"}},
        {"learner": {"kind": "elimination", "variables": ["wings"]}, "features": {"bias": False}},
        {"features": {"cross": "/shop"}},
        {"features": {"cross": "/features/shop"}},
        {"messages": {"features": ""}, "features": {"exclude": ["id"]}},
        {"messages": {"features": ""}, "features": {"include": ["/after/a*", "b"], "cross": "/after/shop"}},
        {"features": {"include": ["*_count"]}},
    ],
)  # fmt: skip
def test_the_first_commands_send_what_this_worker_reads(sections: Any, tmp_path: Path) -> None:
    """Run by a shell as they stand, they make a prediction and judge it."""
    whole = {"log": {"url": f"sqlite:{tmp_path / 'log.db'}"}, "labels": {}, **sections}
    whole["log"] = {**whole["log"], "url": f"sqlite:{tmp_path / 'log.db'}"}
    whole["labels"] = {**whole["labels"], "max_delay": 1_000}
    settings = settings_of(**whole, checkpoint={"url": ""})
    with opened(settings) as log:
        for command in first_commands(settings):
            as_module = command.replace("| mistakebound ", f"| {sys.executable} -m mistakebound ")
            subprocess.run(
                ["sh", "-c", as_module], check=True, cwd=tmp_path, env=ENVIRON, capture_output=True
            )
        done = Run(log, settings)
        tally = done.held.state.ledgers[0].tallies.life
    assert (tally.examples["labelled"], tally.labels["applied"]) == (1, 1)


# --- bounds and snapshots -----------------------------------------------------------------------------


def test_no_bound_says_what_to_declare() -> None:
    """The reason that a person can do something about comes first."""
    assert "learner.gamma" in told_of(settings_of(), OPPOSITES).worker.no_bound
    open_classes = settings_of(learner={"kind": "perceptron", "gamma": 0.1}, labels={"classes": "open"})
    assert "open" in told_of(open_classes, []).worker.no_bound


def test_an_epoch_that_started_from_another_says_so() -> None:
    """No theorem speaks of its model."""
    state = replay_rows(OPPOSITES, settings_of(), 1)
    state.model.based = True
    assert "another one" in why_none(state.model)


def test_a_snapshot_does_not_change_when_the_worker_goes_on() -> None:
    """What an HTTP thread holds stays as it was: no list or map in it is the worker's."""
    now = 0.0
    snapshots = Snapshots("perceptron", clock=lambda: now)
    state = replay_rows(OPPOSITES, settings_of(), 1)
    now = 1.0
    snapshots.observe(settled(state, Fold(settings_of(), 1)))
    shown, said = snapshots.newest, repr(snapshots.newest)
    merge = Merge((0,))
    merge.add(as_stream([Row("later", {"a": 1.0}, True)], settings_of(), 1, 0))
    assert step(state, merge, {("examples", 0), ("labels", 0)}, 100) is not None
    snapshots.observe(committed(facts(3, 3, 3)))
    assert repr(shown) == said
    now = 1.0 + EVERY_S / 2
    snapshots.observe(settled(state, Fold(settings_of(), 1)))
    assert snapshots.newest is shown  # not before its time
    now = 1.0 + EVERY_S
    snapshots.observe(settled(state, Fold(settings_of(), 1)))
    assert snapshots.newest.report.labelled == 3


def test_explaining_has_an_allowance_that_comes_back_with_time() -> None:
    """A stream of mistakes costs so many scores a second and no more; a clock that goes back gives none."""
    now = 0.0
    snapshots = Snapshots("perceptron", clock=lambda: now)
    assert snapshots.allowance() == 1_000
    wide = ExplainedMistake("x", 0, True, False, 0, 1.0, 0.0, 900, ())
    snapshots.observe(committed(StepFacts(explained_mistakes=[wide])))
    assert snapshots.allowance() == 100
    now = 0.1
    assert snapshots.allowance() == 600
    now = 0.0
    assert snapshots.allowance() == 600
    now = 9.0
    assert snapshots.allowance() == 1_000


def test_a_worker_that_holds_nothing_says_so_and_keeps_its_history() -> None:
    """While it rebuilds, no partition is claimed and no count of one is shown."""
    snapshots = Snapshots("perceptron", clock=lambda: 5.0)
    snapshots.observe(committed(facts(3, 1, 3)))
    snapshots.observe(settled(fresh(settings_of(), 2), Fold(settings_of(), 2)))
    snapshots.observe(StateDropped())
    assert (
        snapshots.newest.partitions,
        snapshots.newest.partition_count,
        snapshots.newest.report.labelled,
    ) == ((), None, 0)
    assert snapshots.newest.history[0].labelled == (3,)


def test_lag_and_checkpoint_are_those_of_the_metrics() -> None:
    """One measurement, told twice."""
    metrics = Metrics(["true", "false"], "perceptron", "digest")
    assert metrics.checkpoint() == CheckpointStatus(None, 0, 0, 0)
    metrics.observe(LagMeasured({("examples", 1): 7, ("labels", 1): 2}, 0))
    metrics.checkpointed(0.1, 2_048, 99.5)
    metrics.checkpoint_failed()
    metrics.checkpoint_pending(4)
    assert metrics.behind() == {1: {"examples": 7, "labels": 2}}
    assert metrics.checkpoint() == CheckpointStatus(99.5, 2_048, 4, 1)
