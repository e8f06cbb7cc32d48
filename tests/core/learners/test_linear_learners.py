"""Perceptrons and Winnow by hand: ties, additions in order, factors, overflow; and the model's version and digest."""

import json
from hashlib import sha256
from math import exp, inf, isfinite
from struct import pack
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mistakebound.core.learners import Learner, make
from mistakebound.core.linear.theta import digest, saturate
from mistakebound.core.messages.features import Features
from mistakebound.core.model.model import Model
from mistakebound.settings import Settings
from tests.support.tries import long

NAMES = ("a", "b", "c", "BIAS")
TIED = pytest.mark.parametrize(
    "kind",
    [
        "averaged-perceptron",
        "balanced-winnow",
        "kernel-perceptron",
        "perceptron",
        "voted-perceptron",
        "winnow",
    ],
)
PLAIN = pytest.mark.parametrize("kind", ["averaged-perceptron", "balanced-winnow", "perceptron", "winnow"])
"""Predict by their own weights alone."""
ADDING = pytest.mark.parametrize(
    "kind",
    [
        "averaged-perceptron",
        "balanced-winnow",
        "kernel-perceptron",
        "margin-perceptron",
        "normalized-margin-perceptron",
        "one-sided-perceptron",
        "perceptron",
        "voted-perceptron",
        "winnow",
    ],
)
"""Theta is the sum of y*x."""

wholes = st.integers(-8, 8).map(float)
"""Small whole numbers add up exactly, so orders and groupings of additions cannot matter."""
reals = st.floats(-1e6, 1e6)


def vectors(values: st.SearchStrategy[float]) -> st.SearchStrategy[Features]:
    return st.dictionaries(st.sampled_from(NAMES), values, max_size=4).map(lambda x: tuple(x.items()))


def streams(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[Features, bool]]]:
    return st.lists(st.tuples(vectors(values), st.booleans()), max_size=25)


def learner(kind: str, partitions: int = 1, **settings: Any) -> Learner:
    return make(Settings.model_validate({"learner": {"kind": kind, **settings}}), partitions)


def learn(
    one: Learner, stream: list[tuple[Features, bool]], partitions: int = 1
) -> list[tuple[float, bool, bool]]:
    """(score before the label, errs, predicted by the plain hypothesis) of every row."""
    seen = []
    for number, (x, positive) in enumerate(stream):
        score = one.score(x, number)
        must, plain = one.decide(x, positive)
        seen.append((score, must, plain))
        if must:
            one.fold(number % partitions, x, positive, number + 1, plain)
    return seen


def dot(weights: dict[str, float], x: Features, unseen: float = 0.0) -> float:
    total = 0.0
    for name, value in x:
        total += weights.get(name, unseen) * value
    return total


# --- ties -------------------------------------------------------------------------------------------


@TIED
@pytest.mark.parametrize(
    ("tie", "predicted", "errs_on"),
    [
        ("mistake", False, {True, False}),
        ("positive", True, {False}),
        ("negative", False, {True}),
    ],
)
def test_a_score_of_zero_is_decided_by_the_tie_rule(
    kind: str, tie: str, predicted: bool, errs_on: set[bool]
) -> None:
    """`mistake` predicts negative and updates whatever the label; the others update when they differ."""
    one = learner(kind, tie=tie)
    nothing: Features = (("a", 0.0),)
    score = one.score(nothing, 0)
    assert score == 0.0
    assert one.predict(score) is predicted
    for label in (True, False):
        assert one.decide(nothing, label) == (label in errs_on, predicted)


@PLAIN
@given(stream=streams(reals), tie=st.sampled_from(["mistake", "positive", "negative"]))
def test_off_zero_an_update_is_due_exactly_when_the_class_is_wrong(
    kind: str, stream: list[tuple[Features, bool]], tie: str
) -> None:
    """The tie rule has no say where the score has a sign."""
    one = learner(kind, tie=tie)
    for number, (x, positive) in enumerate(stream):
        must, plain = one.decide(x, positive)
        weights = one.weights()
        score = dot(dict(weights), x)
        if isfinite(score) and score != 0.0:
            assert plain is (score > 0)
            assert bool(must) is (plain is not positive)
        if must:
            one.fold(0, x, positive, number + 1, None)


# --- perceptrons ------------------------------------------------------------------------------------


@given(streams(reals))
def test_the_perceptron_adds_the_mistaken_rows_to_its_weights(stream: list[tuple[Features, bool]]) -> None:
    """The textbook's loop, with the same order of additions: the same bits."""
    weights: dict[str, float] = {}
    expected = []
    for x, positive in stream:
        score = dot(weights, x)
        y = 1.0 if positive else -1.0
        must = y * score <= 0
        expected.append((score, must, score > 0))
        if must:
            for name, value in x:
                weights[name] = weights.get(name, 0.0) + y * value
    one = learner("perceptron")
    assert learn(one, stream) == expected
    assert one.weights() == weights


@pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron"])
@given(stream=streams(wholes), rate=st.floats(1e-6, 1e6))
@example(stream=[((("a", 3.0), ("b", -2.0)), True), ((("a", 6.0), ("b", 9.0)), False)], rate=0.1)
def test_the_learning_rate_changes_no_decision(
    kind: str, stream: list[tuple[Features, bool]], rate: float
) -> None:
    """It scales every weight and every score, nothing else."""
    plain, scaled = learner(kind), learner(kind, learning_rate=rate)
    for one, other in zip(learn(plain, stream), learn(scaled, stream), strict=True):
        assert one[1:] == other[1:]
        assert (one[0] > 0, one[0] < 0) == (other[0] > 0, other[0] < 0)
        assert other[0] == pytest.approx(rate * one[0], rel=1e-9)
    assert plain.theta() == scaled.theta()
    assert scaled.weights() == pytest.approx({name: rate * w for name, w in plain.weights().items()})


@given(streams(wholes), st.integers(1, 4), vectors(wholes))
def test_the_average_is_the_sum_of_the_weights_after_each_labelled_example(
    stream: list[tuple[Features, bool]], partitions: int, probe: Features
) -> None:
    """a <- a + w after every label, as the notes add it up."""
    weights: dict[str, float] = {}
    total: dict[str, float] = {}
    one = learner("averaged-perceptron", partitions)
    for number, (x, positive) in enumerate(stream):
        assert one.score(x, number) == dot(total, x)
        must, _ = one.decide(x, positive)
        y = 1.0 if positive else -1.0
        assert bool(must) is (y * dot(weights, x) <= 0)
        if must:
            one.fold(number % partitions, x, positive, number + 1, None)
            for name, value in x:
                weights[name] = weights.get(name, 0.0) + y * value
        for name, value in weights.items():
            total[name] = total.get(name, 0.0) + value
    assert one.score(probe, len(stream)) == dot(total, probe)


# --- Winnow -----------------------------------------------------------------------------------------

near = st.floats(-3, 3).map(lambda value: round(value, 3))


@given(
    streams(near),
    st.sampled_from([0.01, 0.1, 0.5]),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([None, 0.0, 1.5]),
)
def test_winnow_promotes_and_demotes_by_factors(
    stream: list[tuple[Features, bool]], eta: float, initial: float, threshold: float | None
) -> None:
    """The notes multiply each weight by exp(eta*y*x); ours takes one exponential of the sum."""
    one = learner("winnow", eta=eta, initial_weight=initial, threshold=threshold)
    weights: dict[str, float] = {}
    for number, (x, positive) in enumerate(stream):
        expected = dot(weights, x, unseen=initial) - (threshold or 0.0)
        size = sum(abs(weights.get(name, initial) * value) for name, value in x) + 1
        assert one.score(x, number) == pytest.approx(expected, abs=1e-12 * size)
        if one.decide(x, positive)[0]:
            one.fold(0, x, positive, number + 1, None)
            for name, value in x:
                factor = exp(eta * (1.0 if positive else -1.0) * value)
                weights[name] = weights.get(name, initial) * factor
    assert one.weights() == pytest.approx(weights, rel=1e-9)
    assert all(weight > 0 for weight in one.weights().values())


@given(streams(near), st.sampled_from([0.01, 0.1, 0.5]), st.sampled_from([0.5, 1.0]))
def test_winnows_default_threshold_is_what_the_initial_weights_score(
    stream: list[tuple[Features, bool]], eta: float, initial: float
) -> None:
    """The notes' weights, and the sum of their w0 x as the threshold of each example; weights are shown less w0."""
    one = learner("winnow", eta=eta, initial_weight=initial)
    weights: dict[str, float] = {}
    for number, (x, positive) in enumerate(stream):
        expected = dot(weights, x, unseen=initial) - initial * sum(value for _, value in x)
        size = sum(abs(weights.get(name, initial) * value) for name, value in x) + 1
        assert one.score(x, number) == pytest.approx(expected, abs=1e-12 * size)
        if one.decide(x, positive)[0]:
            one.fold(0, x, positive, number + 1, None)
            for name, value in x:
                factor = exp(eta * (1.0 if positive else -1.0) * value)
                weights[name] = weights.get(name, initial) * factor
    shown = {name: weight - initial for name, weight in weights.items()}
    assert one.weights() == pytest.approx(shown, abs=1e-9)


@given(streams(near), st.sampled_from([0.05, 0.1, 0.5]))
def test_balanced_winnow_is_winnow_on_both_signs(stream: list[tuple[Features, bool]], eta: float) -> None:
    """Doubling x to [x; -x] lets Winnow learn weights of either sign, BIAS too."""
    balanced, doubled = learner("balanced-winnow", eta=eta), learner("winnow", eta=eta, threshold=0)
    for number, (x, positive) in enumerate(stream):
        both = x + tuple((f"-{name}", -value) for name, value in x)
        size = 1 + sum(abs(doubled.weights().get(name, 1.0) * value) for name, value in both)
        expected = doubled.score(both, number)
        assert balanced.score(x, number) == pytest.approx(expected, abs=1e-12 * size)
        if balanced.decide(x, positive)[0]:
            balanced.fold(0, x, positive, number + 1, None)
            doubled.fold(0, both, positive, number + 1, None)


@ADDING
@pytest.mark.parametrize("positive", [True, *long(False)])
@pytest.mark.parametrize("more", [{}, {"eta": 1e300, "initial_weight": 1e300}])
def test_no_weight_overflows_and_theta_goes_on_counting(
    kind: str, positive: bool, more: dict[str, float]
) -> None:
    """exp and sinh are held where float64 ends; the fold, which is the truth, is not."""
    one = learner(kind, **more)
    x: Features = (("a", 1e100), ("b", -1e100), ("c", 1e4), ("BIAS", 1.0))
    for number in range(1, 200):
        one.fold(0, x, positive, number, None)
        for probe in (x, (("a", 1e100), ("b", 1e100)), (("c", 1e-300),), (("new", -1e100),)):
            score = one.score(probe, number)
            assert isfinite(score)
            assert json.loads(json.dumps(score, allow_nan=False)) == score
    sign = 1.0 if positive else -1.0
    assert (one.theta()["c"], one.theta()["BIAS"]) == (sign * 199e4, sign * 199)
    assert all(isfinite(weight) for weight in one.weights().values())


def test_opposite_infinities_cancel() -> None:
    """Every score can be written as JSON, and has a sign only where one infinity is larger."""
    assert saturate(inf - inf) == 0.0
    assert saturate(inf) == -saturate(-inf)
    assert isfinite(saturate(inf))


# --- the model ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), vectors(reals), st.booleans()), max_size=12))
def test_a_models_rollback_restores_its_version(log: list[tuple[int, Features, bool]]) -> None:
    """Version, clock and digest are those of `begin`."""
    model = Model(Settings(), 3)
    for partition, x, positive in log:
        model.labelled(partition)
        model.learn(partition, x, positive, not positive)
    version, seal = model.version(), model.digest()
    model.begin()
    for partition, x, positive in log:
        model.labelled(partition)
        model.learn(partition, x, positive, not positive)
    model.rollback()
    assert (model.version(), model.digest()) == (version, seal)


# --- the digest -------------------------------------------------------------------------------------


def test_the_digest_is_a_hash_of_names_and_theta_in_byte_order() -> None:
    """Name in UTF-8, a zero byte, eight little-endian bytes of float64; names with theta 0 are left out."""
    by_hand = sha256(
        b"BIAS\x00" + bytes.fromhex("000000000000f0bf")  # -1.0
        + b"a\x00" + bytes.fromhex("0000000000000840")  # 3.0
        + "é".encode() + b"\x00" + bytes.fromhex("000000000000e03f")  # 0.5
    ).hexdigest()  # fmt: skip
    assert digest({"é": 0.5, "a": 3.0, "gone": 0.0, "too": -0.0, "BIAS": -1.0}) == by_hand
    assert digest({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_digest_orders_names_by_their_bytes() -> None:
    """In UTF-8, U+FFFF comes before U+10000; in UTF-16 it would not."""
    names = ("\uffff", "\U00010000")
    expected = sha256(b"".join(name.encode() + b"\0" + pack("<d", 1.0) for name in names)).hexdigest()
    assert digest({names[1]: 1.0, names[0]: 1.0}) == expected
