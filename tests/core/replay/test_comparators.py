"""Other rules on the same examples: by hand, against River, against a search over all directions."""

import sys
from math import atan2, cos, exp, log, pi, sin
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.features import BIAS, Features
from mistakebound.core.model.model import Model
from mistakebound.core.replay.applied import Applied
from mistakebound.core.replay.comparators import Judged, compare
from mistakebound.core.replay.comparators.losses import losses
from mistakebound.core.replay.comparators.rules import last_label, logistic_regression, majority
from mistakebound.core.replay.comparators.separator import LARGEST, NoSeparator, best_separator
from mistakebound.core.replay.recording import begin, encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream, replay_records, replay_rows
from mistakebound.settings import Settings
from tests.core.learners.test_figures import standardised
from tests.support.tries import tried

PERCEPTRON = Settings.model_validate({"learner": {"kind": "perceptron"}})

points = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans()), min_size=1, max_size=8)


def plane(data: Any) -> list[tuple[Features, bool]]:
    return [((("x", float(x)), ("y", float(y))), label) for x, y, label in data]


# --- rules and losses -------------------------------------------------------------------------------


def test_the_majority_so_far_is_negative_until_the_positives_are_more() -> None:
    """A tie is negative."""
    assert majority([True, True, False, False, False]) == [-1.0, 1.0, 1.0, 1.0, -1.0]


def test_the_last_label_is_predicted_again() -> None:
    """Negative at first."""
    assert last_label([True, False, True]) == [-1.0, 1.0, -1.0]
    assert last_label([]) == []


@pytest.mark.long
def test_logistic_regression_is_rivers_step_by_step() -> None:
    """Same scores on the pages, with an intercept that learns at the same rate."""
    from river import linear_model, optim  # takes a second

    model = linear_model.LogisticRegression(optim.SGD(0.1), intercept_lr=0.1)
    examples = [((*row.features.items(), (BIAS, 1.0)), row.label) for row in standardised()]
    scores = logistic_regression(examples)
    for row, score in zip(standardised(), scores, strict=True):
        expected = model.predict_proba_one(row.features)[True]
        assert 1 / (1 + exp(-score)) == pytest.approx(expected, rel=1e-9)
        model.learn_one(row.features, row.label)


def test_losses_are_added_up_by_their_formulas() -> None:
    """One example of each kind of score, by hand."""
    found = losses([True, False, True], [0.25, 2.0, 3.0])

    assert (found.mistakes, found.mistake_rate) == (1, pytest.approx(1 / 3))
    assert found.hinge == 0.75 + 3.0 + 0.0
    assert found.squared == 0.75**2 + 9.0 + 4.0
    assert found.log == pytest.approx(log(1 + exp(-0.25)) + log(1 + exp(2)) + log(1 + exp(-3)), rel=1e-11)


def test_no_loss_overflows() -> None:
    """A score may be as large as float64 goes."""
    found = losses([True, False], [-sys.float_info.max, sys.float_info.max])

    assert found.squared == sys.float_info.max or found.squared < float("inf")
    assert found.log < float("inf")


# --- the best separator -----------------------------------------------------------------------------


@given(points)
@tried(60)
def test_the_best_margin_is_that_of_a_search_over_all_directions(data: Any) -> None:
    """In the plane, through the origin: a direction either orthogonal to a difference, or along a point."""
    found = best_separator(plane(data))
    signed = [(x, y) if label else (-x, -y) for x, y, label in data]
    angles = [pi * step / 720 for step in range(1440)]
    for px, py in signed:
        for qx, qy in [*signed, (0, 0)]:
            dx, dy = px - qx, py - qy
            if (dx, dy) != (0, 0):
                angles += [atan2(dy, dx), atan2(dx, -dy), atan2(-dx, dy)]
    best = max(min(cos(a) * x + sin(a) * y for x, y in signed) for a in angles)

    assert found.separable is (best > 1e-9)
    if found.separable:
        assert found.margin == pytest.approx(best, rel=1e-5)
        assert found.margin_at_most == pytest.approx(found.margin, rel=1e-5)
        assert (found.losses.mistakes, found.losses.hinge) == (0, 0)


def test_without_a_separator_it_is_the_one_of_the_least_hinge_loss() -> None:
    """One point with both labels costs 2 whatever w is: (1 - s) + (1 + s)."""
    found = best_separator(plane([(1, 0, True), (1, 0, False), (0, 1, True)]))

    assert (found.separable, found.margin, found.margin_at_most) == (False, None, None)
    assert found.losses.hinge == pytest.approx(2.0)


def test_the_size_of_the_features_does_not_matter() -> None:
    """Margins scale with them, from tiny to huge."""
    rows = [((("x", 3.0), ("y", 2.0)), True), ((("x", -2.0), ("y", 2.0)), False)]
    (plain,) = {best_separator(rows).margin}
    for size in (1e-12, 1e-3, 1e6, 1e90):
        scaled = [(tuple((name, size * value) for name, value in x), label) for x, label in rows]
        assert plain is not None
        assert best_separator(scaled).margin == pytest.approx(size * plain, rel=1e-5)


def test_what_cannot_be_computed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No examples; too many; no scipy: each with its remedy."""
    with pytest.raises(NoSeparator, match="no labelled example"):
        best_separator([])
    one = ((("x", 1.0),), True)
    with pytest.raises(NoSeparator, match=f"takes {LARGEST} entries"):
        best_separator([one] * (LARGEST + 1))
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(NoSeparator, match=r"pip install 'mistakebound\[comparators\]'"):
        best_separator([one])


# --- the whole --------------------------------------------------------------------------------------


def test_regret_is_the_learners_loss_less_the_best_separators() -> None:
    """Both mistakes and hinge loss."""
    found = compare([Judged((("x", 1.0),), True, 0.0, False), Judged((("x", 1.0),), True, 1.0, True)])

    assert found.regret is not None
    assert (found.learner.mistakes, found.regret.mistakes, found.regret.hinge) == (1, 1, 1.0)
    assert found.best_separator is not None
    assert found.best_separator.margin == 1.0


def test_without_examples_there_is_nothing_to_compare() -> None:
    """All sums are 0, no rule has a rate, and the separator is missing for a reason."""
    found = compare([])

    assert (found.learner.mistakes, found.majority.mistake_rate, found.regret) == (0, None, None)
    assert found.separator_missing == "there is no labelled example"


@pytest.mark.parametrize(("delay", "partitions"), [(0, 1), (5, 1), (3, 4)])
def test_what_was_applied_is_read_off_the_steps_in_order(delay: int, partitions: int) -> None:
    """Every labelled example once, with the features as learned and the published score."""
    applied = Applied(Model(PERCEPTRON, 1))
    state = replay_rows(standardised()[:200], PERCEPTRON, partitions, delay, taken=applied.see)

    assert [one.positive for one in applied.judged] == [row.label for row in standardised()[:200]]
    assert [tuple(one.x) for one in applied.judged] == [
        (*row.features.items(), (BIAS, 1.0)) for row in standardised()[:200]
    ]
    mistakes = sum(one.predicted is not one.positive for one in applied.judged)
    assert mistakes == sum(ledger.tallies.life.mistakes for ledger in state.ledgers.values())
    assert compare(applied.judged).learner.mistakes == mistakes


def test_a_recordings_steps_give_the_same_examples() -> None:
    """Examples without a label, duplicates and dead letters are left out."""
    rows = [Row(str(n % 30), {"x": float(n % 4) - 1}, n % 4 > 1) for n in range(40)]
    rows.insert(0, Row("bad", {"x": [1]}, True))
    stream = [record for record in as_stream(rows, PERCEPTRON, 2, 4) if record.key != b"5"]
    lines = [encode_header(2), *(encode(record) for record in stream)]
    _, records = begin(lines)
    applied = Applied(Model(PERCEPTRON, 1))
    state = replay_records(records, PERCEPTRON, 2, taken=applied.see)

    labelled = sum(ledger.tallies.life.examples["labelled"] for ledger in state.ledgers.values())
    assert len(applied.judged) == labelled == 29
