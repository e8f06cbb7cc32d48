"""At each label the model is asked again, before it learns: what waiting for labels cost."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.learners.averaged_perceptron import AveragedPerceptron
from mistakebound.core.linear.theta import predict
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.measures import ConfusionReport
from mistakebound.settings import LearnerSettings, Settings
from tests.core.support.every_kind import CASES, EVERY_CASE, Case
from tests.core.support.feeding import Feeder


def replayed(case: Case, delay: int) -> ConfusionReport:
    random = Random(7)
    rows = [Row(str(n), *case.row(random), tenant=case.tenant(random)) for n in range(150)]
    return report_of(replay_rows(rows, case.settings, 1, delay)).confusion


@EVERY_CASE
def test_at_zero_delay_waiting_costs_nothing(case: Case) -> None:
    """The model that is asked again is the one that predicted."""
    found = replayed(case, 0)
    assert found.mistakes_at_label == found.model.mistakes > 0
    assert found.mistakes_by_delay == 0


@pytest.mark.parametrize("kind", ["perceptron", "winnow", "balanced-winnow", "kernel-perceptron"])
def test_learners_that_learn_from_mistakes_alone_err_at_labels_where_they_update(kind: str) -> None:
    """With a tie rule that says what 0 predicts, under any delay."""
    settings = Settings.model_validate({"learner": {"kind": kind, "tie": "negative"}})
    random, case = Random(3), CASES["perceptron"]
    rows = [Row(str(n), *case.row(random)) for n in range(200)]
    found = report_of(replay_rows(rows, settings, 1, 20))
    assert found.confusion.mistakes_at_label == found.updates > 0
    assert found.confusion.mistakes_by_delay == found.mistakes - found.updates


def test_the_cost_of_waiting_is_right_by_hand() -> None:
    """Three of one class are predicted negative before the first label comes; as each label comes only the first is wrong."""
    f = Feeder(learner={"kind": "perceptron"})
    f.feed(*(f.example(name, 1) for name in "abc"))
    f.feed(*(f.label(name, 2) for name in "abc"))
    confusion = f.ledger.tallies.life.confusion
    assert (f.ledger.tallies.life.mistakes, confusion.mistakes_at_label) == (3, 1)


def test_a_prediction_of_an_older_epoch_is_counted_for_life_alone() -> None:
    """As its mistake is."""
    f = Feeder()
    f.feed(f.example("a", 1))
    f.state.model.epoch = 2
    f.ledger.tallies.begin_epoch()
    f.feed(f.label("a", 2))
    assert f.ledger.tallies.life.confusion.mistakes_at_label == 1
    assert f.ledger.tallies.epoch.confusion.mistakes_at_label == 0


@pytest.mark.parametrize("features", [{"b": "a text", "n": 2}, {"n": None}])
def test_what_the_present_settings_cannot_read_counts_as_published(features: Any) -> None:
    """The model cannot be asked: the Boolean learner takes no 2, and nothing is null."""
    f = Feeder(learner={"kind": "perceptron"}, features={"missing": "skip"})
    f.feed(f.example("a", 1, features))
    later = Feeder(
        learner={"kind": "elimination", "concepts": "monotone-conjunctions", "variables": ["n", "b"]},
        features={"bias": False},
    )
    later.next, later.state.ledgers = f.next, f.state.ledgers
    later.feed(later.label("a", 2))
    assert f.ledger.tallies.life.confusion.mistakes_at_label == f.ledger.tallies.life.mistakes == 1


numbers = st.floats(-1e3, 1e3) | st.just(0.0)
examples = st.lists(
    st.tuples(st.sampled_from("abcd"), numbers), max_size=4, unique_by=lambda one: one[0]
).map(tuple)


@given(st.lists(st.tuples(examples, st.booleans()), max_size=12), examples, st.booleans(), st.integers(0, 50))
def test_judging_in_one_pass_is_deciding_and_scoring(
    updates: list[tuple[Any, bool]], x: Any, positive: bool, clock: int
) -> None:
    """To the bit: the sums are the same additions."""
    learner = AveragedPerceptron(LearnerSettings(), 2)
    learner.begin()
    for number, (each, label) in enumerate(updates):
        learner.fold(number % 2, each, label, number + 1, None)
    amount, predicted, published = learner.judge(x, positive, clock)
    assert (amount, predicted) == learner.decide(x, positive)
    assert published is predict(learner.score(x, clock), "mistake")
