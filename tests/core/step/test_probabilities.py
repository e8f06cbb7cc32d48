"""Probabilities from a partition's own labels; scikit-learn says what they should be."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from mistakebound.commands.demo.pages import read_pages
from mistakebound.core.audit import probabilities as audited
from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.messages.reliability import BUCKETS, Reliability
from mistakebound.core.messages.schema import read_outcomes, read_prediction
from mistakebound.core.messages.tallies import zero
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.step.probabilities import bucket_of, monotone
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings
from tests.core.support.every_kind import CASES, Case, parameters
from tests.core.support.feeding import Feeder

PROBABLE = {"probability": True}
COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=BUCKETS, max_size=BUCKETS)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
HAVE = {name for name, kind in KINDS.items() if kind.no_probability is None}


def feeding(kind: str = "perceptron", **sections: Any) -> Feeder:
    return Feeder(learner={"kind": kind}, predictions=PROBABLE, **sections)


def table(counts: list[tuple[int, int]]) -> Reliability:
    """Of (positive, negative) labels in each bucket."""
    return Reliability(labelled=[sum(both) for both in counts], positive=[one for one, _ in counts])


# --- the probability of a bucket --------------------------------------------------------------------------


@given(COUNTS)
def test_probabilities_are_isotonic_regression_of_the_buckets_shares(counts: list[tuple[int, int]]) -> None:
    """scikit-learn's, weighted by labels + 2; to the last of six decimals."""
    found = table(counts)
    shares = [(p + 1) / (n + 2) for p, n in zip(found.positive, found.labelled, strict=True)]
    weights = [n + 2 for n in found.labelled]
    wanted = IsotonicRegression().fit_transform(range(BUCKETS), shares, sample_weight=weights)
    made = monotone(found.labelled, found.positive)
    assert made == sorted(made)
    assert np.abs(np.array(made) / 1e6 - wanted).max() <= 0.5000001e-6


@given(COUNTS)
def test_worker_and_audit_make_the_same_probabilities(counts: list[tuple[int, int]]) -> None:
    """By pooling neighbours here, by a maximum of minima there."""
    found = table(counts)
    made = monotone(found.labelled, found.positive)
    assert [audited.probability(found, bucket) for bucket in range(BUCKETS)] == made


@given(SCORES, SCORES)
def test_worker_and_audit_find_the_same_bucket(score: float, size: float) -> None:
    """Of any score, and any size at least as large."""
    largest = max(abs(score), abs(size))
    assert bucket_of(score, largest) == audited.bucket_of(score, largest)


@pytest.mark.parametrize(
    ("score", "size", "bucket"),
    [
        (-3.0, 3.0, 0),
        (-2.75, 3.0, 0),
        (-0.1, 2.0, 9),
        (0.0, 2.0, 10),
        (0.0, 0.0, 10),
        (0.5, 2.0, 12),
        (3.0, 3.0, 19),
    ],
)
def test_a_bucket_is_a_twentieth_of_the_margins_from_minus_1_to_1(
    score: float, size: float, bucket: int
) -> None:
    """Of nothing known the margin is 0."""
    assert bucket_of(score, size) == bucket


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(1, 999_999), st.booleans())))
def test_worker_and_audit_count_alike(labels: list[tuple[int, int, bool]]) -> None:
    """The buckets of the margin, those of the probability, and the squared errors."""
    mine, theirs = Reliability(), zero()
    for bucket, millionths, positive in labels:
        mine.count(bucket, millionths, positive=positive)
        audited.count(theirs, bucket, millionths, positive, True)
    assert (theirs.reliability if labels else Reliability()) == mine


# --- the margin -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", parameters(name for name, case in CASES.items() if case.binary and case.kind in HAVE)
)
def test_a_score_is_never_larger_than_the_sum_of_its_terms_sizes(case: Case) -> None:
    """But for rounding; and the sum is that of the scores of single features, without their signs."""
    random, learner = Random(1), case.learner(1)
    size = KINDS[case.kind].size
    assert size is not None
    for clock in range(1, 60):
        raw, label = case.row(random)
        x = tuple((name, float(value)) for name, value in raw.items())
        whole = size(learner, x, clock)
        assert abs(learner.score(x, clock)) <= whole * (1 + 1e-12)
        assert whole == pytest.approx(sum(abs(learner.score((one,), clock)) for one in x))
        amount, predicted = learner.decide(x, label)
        if amount:
            learner.fold(0, x, label, clock, predicted, amount)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_learners_without_a_scale_that_can_be_proved_have_no_probabilities(kind: str) -> None:
    """The refusal names the setting and the remedy; who is not refused has a size."""
    settings = Settings.model_validate({"learner": {"kind": kind}, "predictions": PROBABLE})
    found = [one for one in unmet(settings) if one.key == "predictions.probability"]
    assert bool(found) is (KINDS[kind].size is None)
    assert all("leave it out" in one.remedy for one in found)


def test_those_that_have_probabilities_are_the_linear_ones_that_add() -> None:
    """Winnow's weights round differently on other processors, and kernels and votes have no scale."""
    assert sorted(HAVE) == [
        "averaged-perceptron",
        "margin-perceptron",
        "normalized-margin-perceptron",
        "one-sided-perceptron",
        "passive-aggressive",
        "perceptron",
    ]


def test_more_than_two_classes_have_no_probabilities() -> None:
    """They have a score for each."""
    settings = Settings.model_validate({"labels": {"classes": ["a", "b", "c"]}, "predictions": PROBABLE})
    assert [one.key for one in unmet(settings)] == ["predictions.probability"]


# --- what is published and counted ------------------------------------------------------------------------


def test_without_the_setting_nothing_is_said_of_probabilities() -> None:
    """Records are what they were, and so is the epoch."""
    f = Feeder(learner={"kind": "perceptron"})
    fed = f.feed(f.example("a", 1), f.label("a", 2))
    assert not {"probability", "bucket"} & fed.predictions[0].keys()
    assert b"reliability" not in fed.outputs[-1].value
    assert "predictions" not in Settings().of_epoch()
    assert Settings.model_validate({"predictions": PROBABLE}).of_epoch()["predictions"] == PROBABLE


def test_a_probability_follows_the_labels_of_its_bucket() -> None:
    """A half at first; (1 + 1)/(1 + 2) after one positive label, in every bucket that may not be below."""
    f = feeding()
    fed = f.feed(f.example("a", 1), f.label("a", 2), f.example("b", 3))
    first, second = fed.predictions
    assert (first["bucket"], first["probability"]) == (10, 0.5)
    # Buckets 10 to 19: 2/3 pooled with nine halves, as a larger margin may not be less probable.
    assert (second["bucket"], second["probability"]) == (19, round((2 + 9) / (3 + 18), 6))


def test_a_label_counts_where_its_prediction_was() -> None:
    """In the bucket published, though the model has moved since; the decision says so."""
    f = feeding()
    f.feed(f.example("a", 1), f.example("b", 2))
    fed = f.feed(f.label("b", 3), f.label("a", 4, False))
    assert [(each.bucket, each.probability) for each in fed.decisions] == [(10, 0.5), (10, 0.5)]
    found = f.ledger.tallies.life.reliability
    assert (found.labelled[10], found.positive[10], sum(found.labelled)) == (2, 1, 2)
    assert (found.judged[9], found.happened[9], found.predicted[9]) == (2, 1, 1_000_000)
    assert found.squares == 500_000_000
    assert f.ledger.tallies.epoch.reliability == found


def test_a_label_between_two_examples_of_a_step_counts_for_the_second() -> None:
    """And for none before it: of one step, as of three."""
    f = feeding()
    first, second, third = f.feed(
        f.example("a", 1), f.example("b", 2), f.label("a", 3, False), f.example("c", 4)
    ).predictions
    assert (first["probability"], second["probability"]) == (0.5, 0.5)
    assert third["probability"] < 0.5


def test_a_label_of_an_older_epochs_prediction_counts_for_life_alone() -> None:
    """The present model's table holds its own predictions, and begins empty."""
    f = feeding()
    f.feed(f.example("a", 1))
    f.model.epoch = 2
    f.ledger.tallies.begin_epoch()
    fed = f.feed(f.label("a", 2, False), f.example("b", 3))
    assert f.ledger.tallies.life.reliability.labelled[10] == 1
    assert f.ledger.tallies.epoch.reliability is UNSET
    assert fed.predictions[-1]["probability"] == 0.5


def test_a_label_applied_late_judges_no_probability() -> None:
    """Which one its prediction had is no longer known."""
    f = feeding(labels={"max_delay": 0.01})
    fed = f.feed(
        f.example("a", 1), f.example("b", 100),
        f.label("a", 101, True, features={"a": 1}, prediction=False),
    )  # fmt: skip
    assert fed.decided == [("expired", "a"), ("applied_late", "a")]
    assert f.ledger.tallies.life.reliability is UNSET


# --- the report -----------------------------------------------------------------------------------------


def judged(
    rows: list[Row], delay: int, partitions: int = 1, **sections: Any
) -> tuple[Any, list[float], list[bool]]:
    """The report's probabilities, and those published with their labels."""
    said: dict[int, dict[str, Any]] = {p: {} for p in range(partitions)}
    pairs: list[tuple[float, bool]] = []

    def taken(step: Step) -> None:
        for one in step.transaction.outputs:
            record = Record(one.topic, one.partition, 0, 0, one.key, one.value)
            if one.topic == "predictions":
                prediction = read_prediction(record)
                said[one.partition][prediction.id] = prediction.probability
            elif one.topic == "outcomes":
                for decision in read_outcomes(record).decisions:
                    if decision.outcome == "applied":
                        pairs.append((said[one.partition][decision.id or ""], decision.label is True))

    settings = Settings.model_validate({"predictions": PROBABLE, **sections})
    state = replay_rows(rows, settings, partitions, delay, taken=taken)
    return report_of(state).probabilities, [p for p, _ in pairs], [y for _, y in pairs]


@pytest.mark.parametrize(("delay", "partitions"), [(0, 1), (40, 1), (40, 3)])
def test_the_diagram_and_the_brier_score_are_scikit_learns(delay: int, partitions: int) -> None:
    """On the demo's pages, of all partitions together."""
    found, published, labels = judged(read_pages(), delay, partitions)
    assert found.labelled == len(labels) == 1250
    observed, predicted = calibration_curve(labels, published, n_bins=BUCKETS)
    bins = [one for one in found.bins if one.labelled]
    assert [one.observed for one in bins] == pytest.approx(list(observed), abs=1e-12)
    assert [one.predicted for one in bins] == pytest.approx(list(predicted), abs=1e-12)
    assert found.brier_score == pytest.approx(brier_score_loss(labels, published), abs=1e-9)
    share = sum(labels) / len(labels)
    assert found.brier_score_of_share == pytest.approx(brier_score_loss(labels, [share] * len(labels)))


def test_probabilities_are_worth_more_than_the_share_of_positives() -> None:
    """On the demo's pages: less than half of its Brier score."""
    found, *_ = judged(read_pages(), 0)
    assert found.brier_score < 0.5 * found.brier_score_of_share


def test_probabilities_come_true_where_a_label_is_a_coin_of_the_margins_weight() -> None:
    """Coins whose side follows the example: of the last half of 6,000, no bin of 200 labels is off by more than 0.1."""
    random = Random(7)
    rows = []
    for number in range(6_000):
        x = random.uniform(-1, 1)
        rows.append(Row(str(number), {"x": x}, random.random() < 0.5 + 0.45 * x))
    _, published, labels = judged(rows, 0)
    pairs = list(zip(published, labels, strict=True))[3_000:]
    for n in range(10):
        one = [(p, y) for p, y in pairs if n / 10 < p <= (n + 1) / 10]
        if len(one) >= 200:
            mean_said, share = sum(p for p, _ in one) / len(one), sum(y for _, y in one) / len(one)
            assert abs(mean_said - share) <= 0.1, (n, mean_said, share)


def test_a_report_without_probabilities_has_no_field_of_them() -> None:
    """It is the same, byte for byte, as before there were any."""
    assert "probabilities" not in report_of(replay_rows(read_pages()[:50], Settings(), 1)).as_dict()
