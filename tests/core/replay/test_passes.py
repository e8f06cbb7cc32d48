"""Pass after pass over the same rows: convergence, the cycling theorem's witness, private features."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mistakebound.core.messages.schema import encode
from mistakebound.core.replay.passes import Passes, replay_passes
from mistakebound.core.replay.private_features import PREFIX, WithPrivateFeatures
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.report import Pass
from mistakebound.settings import Settings

CSE446 = (
    Row("1", {"x1": 3, "x2": 2}, True),
    Row("2", {"x1": -2, "x2": 2}, False),
    Row("3", {"x1": -2, "x2": -3}, True),
)
XOR = tuple(Row(f"{a}{b}", {"a": a, "b": b}, a != b) for a in (0, 1) for b in (0, 1))


def passes(rows: Any, kind: str = "perceptron", *, bias: bool = True, **more: Any) -> Passes:
    settings = Settings.model_validate({"learner": {"kind": kind}, "features": {"bias": bias}})
    return replay_passes(rows, settings, more.pop("partitions", 1), **more)


def test_the_lectures_three_points_need_two_mistakes_and_then_none() -> None:
    """CSE 446's trace: [3, 2], then [1, -1], then a pass without a mistake."""
    done = passes(CSE446, bias=False, most=10)

    assert done.passes == (Pass(2, 2), Pass(0, 0))
    assert done.converged
    assert done.cycle is None
    assert done.state.model.learner.theta() == {"x1": 1.0, "x2": -1.0}


def test_passes_end_after_as_many_as_were_asked_for() -> None:
    """It is then not known whether the next one would need an update."""
    done = passes(CSE446, bias=False, most=1)

    assert (len(done.passes), done.converged) == (1, False)


def test_xor_brings_theta_back_and_the_passes_stop_there() -> None:
    """Nothing separates it; the same pass would follow for ever."""
    done = passes(XOR, most=100)

    assert (done.converged, done.cycle) == (False, (0, 1))
    assert len(done.passes) == 1


def test_shuffled_passes_go_on_after_theta_came_back() -> None:
    """Another order may lead elsewhere, though never to an end."""
    done = passes(XOR, most=12, seed=3)

    assert len(done.passes) == 12
    assert done.cycle is not None
    assert not done.converged


def test_each_pass_is_shuffled_by_one_seeded_generator() -> None:
    """The same seed gives the same passes; they are those of the permuted rows one after the other."""
    rows = [Row(str(n), {"x": float(n % 7), "y": float(n % 5)}, n % 3 == 0) for n in range(40)]
    one, again, other = (passes(rows, most=3, seed=seed) for seed in (5, 5, 6))
    generator = np.random.default_rng(5)
    settings = Settings.model_validate({"learner": {"kind": "perceptron"}})
    chained = [
        rows[place]._replace(id=f"{number} {place}")
        for number in range(3)
        for place in generator.permutation(40)
    ]

    assert one.passes == again.passes != other.passes
    assert report_of(one.state).model == report_of(again.state).model
    assert one.state.model.digest() == replay_rows(chained, settings, 1).model.digest()


def test_the_tallies_are_of_all_passes_together() -> None:
    """Every id comes once in each pass and is no duplicate there."""
    done = passes(CSE446, bias=False, most=10)
    report = report_of(done.state)

    assert (report.examples, report.labelled, report.mistakes) == (6, 6, 2)
    assert report.labels["duplicate"] == report.example_outcomes["duplicate"] == 0


@pytest.mark.parametrize("kind", ["averaged-perceptron", "voted-perceptron", "balanced-winnow"])
def test_other_kinds_converge_too(kind: str) -> None:
    """The averaged kinds by the vector that they learn with."""
    assert passes(CSE446, kind, most=100).converged


def test_a_hypothesis_that_errs_without_an_update_has_not_converged() -> None:
    """Elimination learns nothing from a false positive: the labels are no conjunction's."""
    rows = [Row("1", {"a": 1}, True), Row("2", {"a": 1}, False)]
    done = passes(rows, "elimination", bias=False, most=5)

    assert done.passes[-1] == Pass(1, 0)
    assert not done.converged


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans()), min_size=1, max_size=8))
def test_private_features_make_any_data_separable(data: list[tuple[int, int, bool]]) -> None:
    """Even the same point with both labels: each example has a coordinate of its own."""
    rows = [Row(str(n), {"x": x, "y": y}, label) for n, (x, y, label) in enumerate(data)]

    assert passes(WithPrivateFeatures(rows), most=5_000).converged


def test_a_private_feature_is_named_like_none_of_the_users() -> None:
    """However their features are called, in every form that features have."""
    rows = [
        Row("1", {PREFIX + "1": 2.0, "colour": "red"}, True),
        Row("2", [0.5, 1], False),
        Row("3", ["_" + PREFIX, "b", "b"], True),
    ]
    prefix = "__" + PREFIX
    texts = [row._replace(features=Raw(encode(row.features))) for row in rows]

    assert list(WithPrivateFeatures(texts)) == list(WithPrivateFeatures(rows))
    assert [row.features for row in WithPrivateFeatures(rows)] == [
        {PREFIX + "1": 2.0, "colour": "red", prefix + "1": 1.0},
        {"0": 0.5, "1": 1, prefix + "2": 1.0},
        {"_" + PREFIX: 1.0, "b": 2.0, prefix + "3": 1.0},
    ]


def test_features_that_are_none_are_left_for_the_reader_to_refuse() -> None:
    """The reader names the reason."""
    rows = [Row("1", 5, True), Row("2", ["a", 1], True)]

    assert list(WithPrivateFeatures(rows)) == rows
