"""Labels on request: which are asked for, what is learned from, and what is counted."""

from fractions import Fraction
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.audit.asking import weight_of
from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.messages.asking import MOST_ESTIMATE, MOST_WEIGHT, Asked
from mistakebound.core.step.asking import Asking
from mistakebound.settings import LabelSettings, Settings
from tests.core.support.feeding import Feeder

PERCEPTRON = {"kind": "perceptron"}
RATES = st.floats(min_value=1e-9, max_value=1e9)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
SEEDS = st.integers(-(2**63), 2**63)


def asking(rate: float = 2.0, **labels: Any) -> Feeder:
    return Feeder(learner=PERCEPTRON, labels={"ask": rate, **labels})


def ids(wanted: bool, score: float, rate: float, count: int = 1) -> list[str]:
    """Ids of examples whose label is asked for, or is not, at a score."""
    asks = Asking(rate, 0)
    names = (f"i{number}" for number in range(10_000))
    return [name for name in names if (asks.weight(name, score) > 0) is wanted][:count]


# --- which are asked for --------------------------------------------------------------------------------


def test_the_rule_is_the_documented_hash_against_b_over_b_plus_the_scores_size() -> None:
    """blake2b of the seed in decimal, a zero byte and the id; its first 64 bits as a fraction."""
    for number in range(200):
        digest = blake2b(b"7\0i%d" % number, digest_size=8).digest()
        asked = Fraction(int.from_bytes(digest, "big"), 2**64) < Fraction(2, 5)
        assert Asking(2.0, 7).weight(f"i{number}", -3.0) == (2_500_000 if asked else 0)


@given(RATES, SEEDS, st.text(min_size=1), SCORES)
def test_worker_and_audit_ask_alike(rate: float, seed: int, name: str, score: float) -> None:
    """Whole numbers here, fractions there."""
    labels = LabelSettings(ask=rate, ask_seed=seed)
    assert Asking(rate, seed).weight(name, score) == weight_of(labels, name, score)


@given(RATES, SEEDS, st.text(min_size=1), SCORES)
def test_a_score_of_0_is_always_asked_for_and_a_weight_is_never_below_1(
    rate: float, seed: int, name: str, score: float
) -> None:
    """Nor above what whole numbers of 64 bits hold."""
    assert Asking(rate, seed).weight(name, 0.0) == 1_000_000
    weight = Asking(rate, seed).weight(name, score)
    assert weight == 0 or 1_000_000 <= weight <= MOST_WEIGHT


def test_an_id_that_is_asked_for_is_asked_for_at_every_smaller_score() -> None:
    """One hash, one threshold: who is less sure never asks less."""
    asks = Asking(1.0, 0)
    for number in range(100):
        asked = [asks.weight(f"i{number}", score) > 0 for score in (0.0, 0.5, -1.0, 3.0, -10.0)]
        assert asked == sorted(asked, reverse=True)


def test_a_share_of_b_over_b_plus_the_scores_size_is_asked_for() -> None:
    """Of 10,000 ids within five standard deviations."""
    for score, share in ((1.0, 2 / 3), (2.0, 0.5), (18.0, 0.1)):
        asked = sum(Asking(2.0, 0).weight(f"i{number}", score) > 0 for number in range(10_000))
        assert abs(asked - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


# --- what is published, learned and counted -------------------------------------------------------------


def test_without_the_setting_nothing_is_said_of_asking() -> None:
    """Records are what they were."""
    f = Feeder(learner=PERCEPTRON)
    fed = f.feed(f.example("a", 1), f.label("a", 2))
    assert not {"ask", "weight"} & fed.predictions[0].keys()
    assert fed.decisions[-1].weight is None
    assert b"asked" not in fed.outputs[-1].value


def test_a_prediction_says_whether_its_label_is_asked_for() -> None:
    """With the number of examples that it then stands for, in millionths."""
    f = asking(1.0)
    f.feed(f.example("first", 1), f.label("first", 2))  # from now on a score is 2
    (wanted,), (unwanted,) = ids(True, 2.0, 1.0), ids(False, 2.0, 1.0)
    fed = f.feed(f.example(wanted, 3), f.example(unwanted, 4))
    assert [(each["ask"], each.get("weight")) for each in fed.predictions] == [
        (True, 3_000_000),
        (False, None),
    ]
    assert [dict(one.asked) for one in fed.facts] == [{True: 1, False: 1}]


def test_only_labels_asked_for_are_learned_from() -> None:
    """Both predictions were wrong; the one that was not asked for is judged and counted, and changes nothing."""
    f = asking(1.0)
    f.feed(f.example("first", 1), f.label("first", 2))
    (wanted,), (unwanted,) = ids(True, 2.0, 1.0), ids(False, 2.0, 1.0)
    not_learned = f.feed(f.example(unwanted, 3), f.label(unwanted, 4, False))
    learned = f.feed(f.example(wanted, 5), f.label(wanted, 6, False))
    assert (len(not_learned.updates), len(learned.updates)) == (0, 1)
    assert [each.outcome for each in (*not_learned.decisions, *learned.decisions)] == ["applied", "applied"]
    assert [each.weight for each in (*not_learned.decisions, *learned.decisions)] == [0, 3_000_000]
    life = f.ledger.tallies.life
    assert (life.mistakes, life.judged, life.updates) == (3, 3, 2)
    assert life.asked == Asked(labelled=2, unasked_labelled=1, mistakes=2, estimate=4_000_000, radius=2**0.5)
    f.balance()


def test_a_label_that_comes_first_is_asked_for_by_its_examples_score() -> None:
    """It is parked, and decided when the example is predicted."""
    f = asking(1.0)
    f.feed(f.example("first", 1), f.label("first", 2))
    (unwanted,) = ids(False, 2.0, 1.0)
    fed = f.feed(f.label(unwanted, 3, False), f.example(unwanted, 4))
    assert fed.updates == []
    assert fed.decided == [("parked", unwanted), ("applied", unwanted)]


def test_examples_that_are_given_up_count_as_missing_where_they_were_asked_for() -> None:
    """So that the coverage of the estimate is known."""
    f = asking(1.0, max_delay=0.01)
    f.feed(f.example("first", 1), f.label("first", 2))
    (wanted,), (unwanted,) = ids(True, 2.0, 1.0), ids(False, 2.0, 1.0)
    fed = f.feed(f.example(wanted, 3), f.example(unwanted, 4), f.example("later", 100))
    assert [(each.outcome, each.weight) for each in fed.decisions] == [("expired", 3_000_000), ("expired", 0)]
    asked = f.ledger.tallies.life.asked
    assert (asked.labelled, asked.missing, asked.unasked_missing) == (1, 1, 1)


def test_a_label_applied_late_is_judged_and_not_learned_from() -> None:
    """Whether it was asked for is no longer known."""
    f = asking(1.0, max_delay=0.01)
    fed = f.feed(
        f.example("a", 1), f.example("b", 100),
        f.label("a", 101, True, features={"a": 1}, prediction=False),
    )  # fmt: skip
    assert fed.decided == [("expired", "a"), ("applied_late", "a")]
    assert fed.updates == []
    assert f.ledger.tallies.life.mistakes == 1
    assert f.ledger.tallies.life.asked.mistakes == 0


def test_the_estimate_stops_where_whole_numbers_of_64_bits_end() -> None:
    """Rather than be written as a number that few readers take."""
    asked = Asked(estimate=MOST_ESTIMATE - 5)
    asked.count(1_000_000, labelled=True, mistaken=True)
    assert asked.estimate == MOST_ESTIMATE


# --- who can ask ----------------------------------------------------------------------------------------

REFUSED = {"averaged-perceptron", "voted-perceptron", "elimination", "con", "halving"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_whose_score_does_not_say_how_sure_it_is_asks_for_no_labels(kind: str) -> None:
    """The refusal names the setting and says what to do instead; the others ask."""
    settings = Settings.model_validate({"learner": {"kind": kind}, "labels": {"ask": 2.0}})
    found = [one for one in unmet(settings) if one.key == "labels.ask"]
    assert bool(found) is (kind in REFUSED)
    assert all("Take the perceptron" in one.remedy for one in found)


def test_more_than_two_classes_ask_for_no_labels() -> None:
    """They have a score for each."""
    settings = Settings.model_validate(
        {"learner": PERCEPTRON, "labels": {"ask": 2.0, "classes": ["a", "b", "c"]}}
    )
    assert [one.key for one in unmet(settings)] == ["labels.ask"]
