"""Published figures and hand traces come out of the worker's own step, to the mistake.

Data: the UCI Phishing pages as River ships them, 1,250 rows in file order.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from river import datasets, preprocessing

from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.settings import Settings
from tests.support.tries import long

PERCEPTRON = {"kind": "perceptron"}
AVERAGED = {"kind": "averaged-perceptron"}


@cache
def raw() -> tuple[Row, ...]:
    """The rows as they are."""
    return tuple(Row(str(n), dict(x), bool(y)) for n, (x, y) in enumerate(datasets.Phishing()))


@cache
def standardised() -> tuple[Row, ...]:
    """Each row scaled by the mean and deviation of the rows so far, itself included."""
    scaler = preprocessing.StandardScaler()
    rows = []
    for row in raw():
        scaler.learn_one(row.features)
        rows.append(row._replace(features=dict(scaler.transform_one(row.features))))
    return tuple(rows)


def run(
    rows: tuple[Row, ...], learner: dict[str, Any], *, bias: bool = True, partitions: int = 1, delay: int = 0
) -> State:
    """The worker's state after the rows."""
    settings = Settings.model_validate({"learner": learner, "features": {"bias": bias}})
    return replay_rows(rows, settings, partitions, delay)


def report_on(rows: tuple[Row, ...], learner: dict[str, Any], **more: Any) -> Report:
    """The report after these rows."""
    return report_of(run(rows, learner, **more))


@pytest.mark.parametrize(("learner", "mistakes"), [(PERCEPTRON, 177), (AVERAGED, 138)])
def test_standardised_rows_give_the_published_mistakes(learner: dict[str, Any], mistakes: int) -> None:
    """River publishes 85.84 % for its perceptron on these rows: 177 mistakes of 1,250."""
    report = report_on(standardised(), learner)
    assert (report.labelled, report.mistakes) == (1250, mistakes)


@pytest.mark.parametrize(
    ("learner", "mistakes"),
    [
        (PERCEPTRON, 205),
        (AVERAGED, 145),
        ({"kind": "balanced-winnow", "eta": 0.05}, 197),
        ({"kind": "balanced-winnow", "eta": 0.1}, 200),
        ({"kind": "balanced-winnow", "eta": 0.5}, 241),
    ],
)
def test_raw_rows_with_bias_give_known_mistakes(learner: dict[str, Any], mistakes: int) -> None:
    """Nothing is scaled; BIAS is a feature like the others."""
    assert report_on(raw(), learner).mistakes == mistakes


def test_raw_rows_without_bias_cost_the_perceptron_more() -> None:
    """A hyperplane through the origin separates worse."""
    assert report_on(raw(), PERCEPTRON, bias=False).mistakes == 273


@pytest.mark.parametrize(
    ("policy", "delay", "mistakes"),
    [
        ("rescore", 1, 180),
        ("rescore", 10, 175),
        ("rescore", 100, 210),
        ("rescore", 500, 320),
        ("issued", 1, 191),
        ("issued", 10, 185),
        ("issued", 100, 212),
        ("issued", 500, 372),
    ],
)
def test_late_labels_cost_mistakes_by_policy(policy: str, delay: int, mistakes: int) -> None:
    """The two policies are two algorithms as soon as a label is late."""
    report = report_on(standardised(), {**PERCEPTRON, "delay_policy": policy}, delay=delay)
    assert (report.labelled, report.waiting, report.mistakes) == (1250, 0, mistakes)


@pytest.mark.parametrize("delay", [100, *long(1, 10, 500)])
def test_the_order_of_labels_alone_decides_the_updates_of_rescore(delay: int) -> None:
    """However late the labels, the updates are those of the textbook protocol: the same model, too."""
    late, at_once = report_on(standardised(), PERCEPTRON, delay=delay), report_on(standardised(), PERCEPTRON)
    assert late.updates == at_once.updates
    assert late.model == at_once.model


@pytest.mark.parametrize("partitions", [4, *long(1, 7)])
@pytest.mark.parametrize(("rows", "mistakes"), [(standardised, 138), (raw, 145)])
def test_the_average_is_the_same_on_any_number_of_partitions(
    partitions: int, rows: Any, mistakes: int
) -> None:
    """The clock counts the labelled examples of all partitions together."""
    report = report_on(rows(), AVERAGED, partitions=partitions)
    assert (report.mistakes, len(report.model.updates)) == (mistakes, partitions)


def test_always_the_majority_so_far_makes_554_mistakes() -> None:
    """What learns nothing stands beside every rate, whatever the learner; it counts by partition."""
    assert report_on(raw(), PERCEPTRON).baselines["majority"].mistakes == 554
    assert report_on(standardised(), AVERAGED).baselines["majority"].mistakes == 554


@pytest.mark.long
def test_scikit_learns_perceptron_has_the_same_weights_after_every_row() -> None:
    """Two implementations that share no line, step by step: prediction and weights."""
    from sklearn.linear_model import Perceptron as SklearnPerceptron  # takes two seconds

    oracle, names = SklearnPerceptron(shuffle=False), list(raw()[0].features)
    mistakes = 0
    settings = Settings.model_validate({"learner": PERCEPTRON})
    states: list[dict[str, float]] = []
    replay_rows(
        standardised(),
        settings,
        1,
        progress=lambda s: states.append(dict(s.model.learner.weights())),
        longest_run=1,
    )
    for number, row in enumerate(standardised()):
        x = np.array([[row.features[name] for name in names]])
        y = np.array([row.label])
        predicted = bool(oracle.predict(x)[0]) if number else False
        mistakes += predicted is not row.label
        oracle.partial_fit(x, y, classes=[False, True])
        ours = states[2 * number + 1]
        np.testing.assert_allclose([ours.get(name, 0.0) for name in names], oracle.coef_[0], atol=1e-9)
        assert ours.get("BIAS", 0.0) == oracle.intercept_[0]
    assert mistakes == 177


@pytest.mark.long
def test_rivers_perceptron_errs_on_the_same_rows() -> None:
    """River too predicts negative at a score of 0, and updates there whatever the label."""
    from river import linear_model  # takes a second

    oracle = linear_model.Perceptron()
    settings = Settings.model_validate({"learner": PERCEPTRON})
    counts: list[int] = []
    replay_rows(
        standardised(),
        settings,
        1,
        progress=lambda s: counts.append(s.ledgers[0].tallies.life.mistakes),
        longest_run=1,
    )
    theirs = 0
    for number, row in enumerate(standardised()):
        theirs += bool(oracle.predict_one(row.features)) is not row.label
        oracle.learn_one(row.features, row.label)
        assert counts[2 * number + 1] == theirs
    assert theirs == 177


def test_the_textbook_trace_of_three_points_ends_at_one_minus_one() -> None:
    """CSE446: (3, 2)+, (-2, 2)-, (-2, -3)+ without bias, sign(0) = -1.

    The first point scores 0, which predicts negative: w = (3, 2). The second scores -2, right. The third
    scores -12, wrong: w = (1, -1). A second pass finds scores 1, -4 and 1: nothing to correct.
    """
    points = [((3, 2), True), ((-2, 2), False), ((-2, -3), True)]
    rows = tuple(Row(str(n), {"a": x[0], "b": x[1]}, y) for n, (x, y) in enumerate(points))
    learner = {**PERCEPTRON, "tie": "negative"}
    once = run(rows, learner, bias=False)
    assert dict(once.model.learner.weights()) == {"a": 1.0, "b": -1.0}
    assert report_of(once).mistakes == 2
    again = tuple(row._replace(id=f"again-{row.id}") for row in rows)
    twice = run(rows + again, learner, bias=False)
    assert report_of(twice).mistakes == 2
    assert dict(twice.model.learner.weights()) == {"a": 1.0, "b": -1.0}


def test_the_spam_filter_of_the_notes_scores_three() -> None:
    """Weights: 4 for "free", 2 for "money", -3 for the constant; both words once: 4 + 2 - 3 = 3, spam."""
    model = run((), PERCEPTRON).model
    model.learner.load({"theta": [{"free": 4.0, "money": 2.0, "BIAS": -3.0}]})
    score = model.learner.score(model.features(b'["free", "money"]'), 0)
    assert score == 3.0
    assert model.learner.predict(score)
    assert not model.learner.predict(model.learner.score(model.features(b'["hello"]'), 0))
