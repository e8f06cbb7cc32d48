"""Hand traces, published figures and other forms of the same algorithm, for learners beside the perceptron."""

from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets as sklearn_datasets

from mistakebound.core.learners import Learner, concepts, make
from mistakebound.core.messages.features import Features
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.settings import Settings
from tests.core.support.feeding import Feeder
from tests.support.tries import tried


def learner(kind: str, partitions: int = 1, *, labels: Any = None, **more: Any) -> Learner:
    return make(
        Settings.model_validate(
            {"learner": {"kind": kind, **more}, "features": {"bias": False}, "labels": labels or {}}
        ),
        partitions,
    )


def learn(one: Learner, stream: list[tuple[Features, Any]]) -> list[Any]:
    """The class predicted before each label."""
    seen = []
    for clock, (x, label) in enumerate(stream, 1):
        must, predicted = one.decide(x, label)
        seen.append(predicted)
        if must:
            one.fold(0, x, label, clock, predicted)
    return seen


# --- many classes -------------------------------------------------------------------------------------------

TOPICS = {
    "sports": {"win": 4.0, "game": 4.0, "BIAS": -2.0},
    "politics": {"win": 2.0, "vote": 4.0, "BIAS": 1.0},
    "technology": {"game": 2.0, "BIAS": 2.0},
}
NEWS = Settings.model_validate({"learner": {"kind": "perceptron"}, "labels": {"classes": list(TOPICS)}})


def test_win_the_vote_is_about_politics() -> None:
    """The notes' three classes: politics 2 + 4 + 1 = 7, sports 4 - 2 = 2, technology 2."""
    model = replay_rows((), NEWS, 1).model
    model.learner.load([(name, [weights], [{}]) for name, weights in TOPICS.items()])
    score = model.score(model.features(b'["win", "the", "vote"]'))
    assert score == [2.0, 7.0, 2.0]
    assert model.predict(score) == "politics"


def test_equal_scores_are_decided_by_the_order_of_declaration() -> None:
    """The first declared class wins, not the first by name."""
    model = replay_rows((), NEWS, 1).model
    assert model.predict(model.score(model.features(b"[]"))) == "sports"
    assert model.predict([0.0, 1.0, 1.0]) == "politics"


@cache
def digits() -> tuple[Row, ...]:
    """scikit-learn's 1,797 digits in file order, raw pixels."""
    images, targets = sklearn_datasets.load_digits(return_X_y=True)
    return tuple(
        Row(str(n), [float(pixel) for pixel in x], int(y))
        for n, (x, y) in enumerate(zip(images, targets, strict=True))
    )


def test_digits_cost_315_mistakes() -> None:
    """Largest score wins, ties to the lowest digit, in file order."""
    chosen = Settings.model_validate(
        {
            "learner": {"kind": "perceptron"},
            "labels": {"classes": list(range(10))},
            "features": {"bias": False},
        }
    )
    report = report_of(replay_rows(digits(), chosen, 1))
    assert (report.labelled, report.mistakes, report.updates) == (1797, 315, 315)


def test_a_class_is_known_from_its_first_update_on() -> None:
    """Before any, the prediction is null; a class that was never confused is not among the scores."""
    f = Feeder(learner={"kind": "perceptron"}, labels={"classes": "open"}, features={"bias": False})
    fed = f.feed(f.example("one", 1, {"a": 1}), f.label("one", 2, "pear"))
    assert [(each["prediction"], each["scores"]) for each in fed.predictions] == [(None, [])]
    assert [(each["label"], each["predicted"]) for each in fed.updates] == [("pear", None)]
    fed = f.feed(f.example("two", 3, {"a": 1, "b": 1}), f.label("two", 4, "fig"))
    assert [(each["prediction"], each["scores"]) for each in fed.predictions] == [("pear", [1.0])]
    assert [(each["label"], each["predicted"]) for each in fed.updates] == [("fig", "pear")]
    fed = f.feed(f.example("three", 5, {"b": 1}))
    assert [(each["prediction"], each["scores"]) for each in fed.predictions] == [("fig", [1.0, -1.0])]
    f.balance()


def test_a_label_beyond_max_classes_is_a_dead_letter() -> None:
    """Its reason says what to raise; known classes go on."""
    f = Feeder(learner={"kind": "perceptron"}, labels={"classes": "open", "max_classes": 2})
    for number, name in enumerate(("fig", "pear", "plum", "fig")):
        fed = f.feed(
            f.example(str(number), 2 * number, {name: 1}), f.label(str(number), 2 * number + 1, name)
        )
        reasons = [dict(each.headers)["mistakebound.reason"] for each in fed.dead_letters]
        assert reasons == ([b"unknown-label"] if name == "plum" else [])
    assert f.model.learner.decide((("plum", 1.0),), "fig")[1] in ("fig", "pear")
    f.balance()


# --- kernels ------------------------------------------------------------------------------------------------

XOR = [((("a", a), ("b", b)), a * b < 0) for a, b in product((-1.0, 1.0), repeat=2)]

small = tried(40)
wholes = st.integers(-5, 5).map(float)
vectors = st.dictionaries(st.sampled_from("abc"), wholes, max_size=3).map(lambda x: tuple(x.items()))
streams = st.lists(st.tuples(vectors, st.booleans()), max_size=20)


@small
@given(streams, vectors)
def test_a_kernel_of_degree_1_is_the_perceptron_with_bias(
    stream: list[tuple[Features, bool]], probe: Features
) -> None:
    """x.z + 1 is the inner product of both with the constant 1: same scores, same decisions."""
    dual, primal = learner("kernel-perceptron", degree=1), learner("perceptron")
    biased = [((*x, ("BIAS", 1.0)), label) for x, label in stream]
    assert learn(dual, stream) == learn(primal, biased)
    assert dual.score(probe, 0) == primal.score((*probe, ("BIAS", 1.0)), 0)


@pytest.mark.parametrize("kernel", [{"degree": 2}, {"degree": 3}, {"kernel": "rbf", "width": 0.7}])
def test_xor_is_learned(kernel: dict[str, Any]) -> None:
    """No line separates it; after a few passes these kernels make no mistake any more."""
    one = learner("kernel-perceptron", **kernel)
    for _ in range(10):
        learn(one, XOR)
    assert learn(one, XOR) == [label for _, label in XOR]


def test_xor_is_never_learned_without_a_kernel() -> None:
    """Each pass errs, for ever."""
    one = learner("kernel-perceptron", degree=1)
    for _ in range(50):
        assert learn(one, XOR) != [label for _, label in XOR]


@small
@given(st.lists(st.tuples(st.integers(0, 1), vectors, st.booleans()), max_size=25), st.integers(1, 4))
def test_a_budget_forgets_the_oldest_of_each_partition(
    log: list[tuple[int, Features, bool]], budget: int
) -> None:
    """What is left is what a learner without a budget has of the last mistakes of each partition alone."""
    one, other = learner("kernel-perceptron", 2, budget=budget), learner("kernel-perceptron", 2)
    for clock, (p, x, positive) in enumerate(log):
        one.fold(p, x, positive, clock, not positive)
    for p in range(2):
        mine = [(clock, x, positive) for clock, (q, x, positive) in enumerate(log) if q == p]
        for clock, x, positive in mine[-budget:]:
            other.fold(p, x, positive, clock, not positive)
    assert one.dump() == other.dump()
    assert one.digest() == other.digest()


@pytest.mark.parametrize("kernel", [{"degree": 2}, {"degree": 3}, {"degree": 1000}, {"kernel": "rbf"}])
@pytest.mark.parametrize("size", [1e100, -1e100, 1e-300])
def test_a_kernel_never_overflows(kernel: dict[str, Any], size: float) -> None:
    """The largest features allowed have a score, as any other."""
    f = Feeder(learner={"kind": "kernel-perceptron", **kernel})
    for number in range(4):
        value = size if number % 2 else -size
        fed = f.feed(
            f.example(str(number), 2 * number, {"a": value}), f.label(str(number), 2 * number + 1, value > 0)
        )
        assert not fed.dead_letters
        assert isinstance(fed.predictions[0]["score"], float)
    assert f.model.radius <= 1.8e308


def test_the_smallest_width_is_no_division_by_zero() -> None:
    """Its square is 0 in float64: each example is near to itself alone."""
    one = learner("kernel-perceptron", kernel="rbf", width=1e-200)
    one.fold(0, (("a", 1.0),), True, 1, False)
    assert (one.score((("a", 1.0),), 1), one.score((("a", 2.0),), 1)) == (1.0, 0.0)


# --- voted and averaged -------------------------------------------------------------------------------------


@small
@given(streams, st.integers(1, 4))
def test_the_memory_of_the_voted_perceptron_is_bounded(
    stream: list[tuple[Features, bool]], budget: int
) -> None:
    """It keeps so many vectors; the last one is the perceptron's all the same."""
    one, plain = learner("voted-perceptron", budget=budget), learner("perceptron")
    assert learn(one, stream) == learn(plain, stream)
    assert len(one.dump()["voters"][0]) <= budget
    assert one.theta() == plain.theta()


# --- conjunctions -------------------------------------------------------------------------------------------


def active(*places: int) -> Features:
    return tuple((f"x{place}", 1.0) for place in places)


ALL = range(1, 101)
NATURE = [
    (active(*ALL), True),
    (active(1, 2, 3), False),
    (active(1, 2, 3, 4, 5, 99, 100), True),
    (active(1, 3, 4, 5, 99, 100), False),
    (active(1, 2, 3, 4, 5, 100), True),
    (active(1, 3, 99, 100), False),
    (active(1, 2, 3, 4, 5, 6, 100), True),
    (active(2, 4, 99, 100), False),
]
"""The notes' eight examples of x2 and x3 and x4 and x5 and x100."""


def test_the_eight_examples_of_the_notes_leave_six_literals() -> None:
    """x1, x2, x3, x4, x5 and x100, with mistakes at the third and the fifth."""
    one = learner("elimination", variables=[f"x{place}" for place in ALL])
    predicted = learn(one, NATURE)
    wrong = [
        place for place, (p, (_, label)) in enumerate(zip(predicted, NATURE, strict=True), 1) if p != label
    ]
    assert wrong == [3, 5]
    assert set(one.weights()) == {"x1", "x2", "x3", "x4", "x5", "x100"}


booleans = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.0, 1.0]), max_size=4), st.booleans()
    ),
    max_size=20,
).map(lambda rows: [(tuple(x.items()), label) for x, label in rows])


@small
@given(booleans)
def test_a_disjunction_is_learned_as_the_conjunction_of_its_negations(
    stream: list[tuple[Features, bool]],
) -> None:
    """De Morgan: flip all features and labels, and the conjunction learner does the same."""
    names = ["a", "b", "c", "d"]
    for disjunctions, conjunctions in (
        ("monotone-disjunctions", "monotone-conjunctions"),
        ("disjunctions", "conjunctions"),
    ):
        one = learner("elimination", concepts=disjunctions, variables=names)
        other = learner("elimination", concepts=conjunctions, variables=names)
        flipped = [
            (tuple((name, 1.0 - dict(x).get(name, 0.0)) for name in names), not label) for x, label in stream
        ]
        assert learn(one, stream) == [not each for each in learn(other, flipped)]


# --- finite classes -----------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")


@small
@given(
    booleans,
    st.sampled_from(["conjunctions", "k-conjunctions:1", "thresholds"]),
    st.none() | st.integers(0, 3),
)
def test_con_may_as_well_look_back_when_it_is_asked(
    stream: list[tuple[Features, bool]], spec: str, seed: int | None
) -> None:
    """Filtering at every label, or keeping the labels and searching at each prediction: the same."""
    names = ("a", "b", "c", "d")
    eager = learner("con", concepts=spec, variables=names, ranking_seed=seed)
    order = getattr(eager, "_ranking")  # noqa: B009
    space = concepts.named(spec, names)

    def mask(x: Features) -> int:
        return sum(1 << names.index(name) for name, value in x if value)

    kept: list[tuple[int, bool]] = []
    lazy = []
    for x, label in stream:
        first = next((c for c in order if all(space.values(z)[c] == y for z, y in kept)), None)
        lazy.append(first is not None and bool(space.values(mask(x))[first]))
        kept.append((mask(x), label))
    assert learn(eager, stream) == lazy


@pytest.mark.parametrize("kind", ["con", "halving"])
def test_an_empty_version_space_stays_empty(kind: str) -> None:
    """Contradicting labels leave no concept: negative from then on, nothing is updated, nothing fails."""
    f = Feeder(
        learner={"kind": kind, "concepts": "conjunctions", "variables": list(NAMES)}, features={"bias": False}
    )
    for number, label in enumerate((True, False, True, False)):
        f.feed(f.example(str(number), 2 * number, {"a": 1}), f.label(str(number), 2 * number + 1, label))
    assert f.model.learner.size() == 0
    fed = f.feed(f.example("x", 20, {"b": 1}), f.label("x", 21, True))
    assert [each["prediction"] for each in fed.predictions] == [False]
    assert (fed.updates, f.ledger.tallies.life.mistakes > 0) == ([], True)
    f.balance()


def test_a_class_of_short_conjunctions_may_have_many_variables() -> None:
    """More than an integer of 64 bits holds."""
    names = [f"x{place}" for place in ALL]
    one = learner("halving", concepts="k-conjunctions:1", variables=names)
    rows = [
        (active(*(place for place in ALL if chance.random() < 0.5)), None)
        for chance in [Random(3)]
        for _ in range(60)
    ]
    learn(one, [(x, ("x100", 1.0) in x) for x, _ in rows])
    assert dict(one.weights()) == {"x100": 1.0}


@pytest.mark.parametrize(("variables", "size"), [(30, str(2**30)), (20_000, r"more than 2\^20000")])
def test_a_class_too_large_names_its_size(variables: int, size: str) -> None:
    """Also where its digits would fill pages."""
    names = tuple(map(str, range(variables)))
    with pytest.raises(concepts.TooManyConcepts, match=f"monotone-conjunctions has {size} concepts"):
        concepts.named("monotone-conjunctions", names)


# --- Littlestone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("demotion", ["divide", "zero"])
def test_a_feature_in_no_update_sleeps(demotion: str) -> None:
    """It weighs 1 and is not stored; sent as 0 or left out, nothing of it changes."""
    one = learner("littlestone-winnow", threshold=1.5, demotion=demotion)
    other = learner("littlestone-winnow", threshold=1.5, demotion=demotion)
    stream = [
        ({"a": 1}, True),
        ({"a": 1, "b": 1}, False),
        ({"b": 1, "c": 1}, True),
        ({"a": 1, "c": 1}, False),
    ]
    sparse = [(tuple((name, 1.0) for name in x), label) for x, label in stream]
    dense = [(tuple((name, float(name in x)) for name in "abcd"), label) for x, label in stream]
    assert learn(one, sparse) == learn(other, dense)
    for probe in (dense[0][0], sparse[1][0], (("d", 1.0),), (("never", 1.0), ("nor", 1.0))):
        assert one.score(probe, 4) == other.score(probe, 4)
    assert one.score((("never", 1.0),), 4) == 1.0 - 1.5
    assert one.digest() == other.digest()


# --- what a Boolean learner does not take -------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen",
    [
        {"kind": "littlestone-winnow", "threshold": 2.0},
        {"kind": "elimination"},
        {"kind": "con", "concepts": "thresholds", "variables": list(NAMES)},
        {"kind": "halving", "concepts": "thresholds", "variables": list(NAMES)},
    ],
)
def test_what_is_not_boolean_is_a_dead_letter(chosen: dict[str, Any]) -> None:
    """0, 1, true, false and tokens that occur once are taken; nothing else reaches the learner."""
    f = Feeder(learner=chosen, features={"bias": False})
    for number, features in enumerate(({"a": 1, "b": 0}, {"a": True, "b": False}, ["a", "b"], {"a": 1.0})):
        assert not f.feed(f.example(f"good {number}", number, features)).dead_letters
    for number, features in enumerate(({"a": 2}, {"a": 0.5}, {"a": -1}, ["a", "a"])):
        fed = f.feed(f.example(f"bad {number}", 10 + number, features))
        (letter,) = fed.dead_letters
        assert dict(letter.headers)["mistakebound.reason"] == b"not-boolean"
        assert fed.predictions == []
    f.balance()


def test_an_undeclared_variable_is_a_dead_letter() -> None:
    """Where variables are declared; the reason names it."""
    f = Feeder(learner={"kind": "elimination", "variables": list(NAMES)}, features={"bias": False})
    (letter,) = f.feed(f.example("x", 1, {"a": 1, "d": 1})).dead_letters
    headers = dict(letter.headers)
    assert headers["mistakebound.reason"] == b"unknown-variable"
    assert b"'d'" in b" ".join(value or b"" for value in headers.values())
