"""Each learner against its textbook form, written as the notes have it: no theta, no rows, no counting.

Both see the same examples; scores, classes and updates must agree at every one. Values are such that ties
happen.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, product
from math import exp, inf, sqrt
from random import Random
from typing import Any

import pytest
from river.linear_model import PAClassifier

from mistakebound.core.learners import KINDS, Learner, make
from mistakebound.core.messages.features import Features
from mistakebound.settings import Settings
from tests.support.tries import long

Vector = dict[str, float]
VARIABLES = ("0", "1", "2", "3")


def dot(weights: Mapping[str, float], x: Features, unseen: float = 0.0) -> float:
    return sum(weights.get(name, unseen) * value for name, value in x)


def added(weights: Vector, x: Features, scale: float) -> Vector:
    named = dict(x)
    return {
        name: weights.get(name, 0.0) + scale * named.get(name, 0.0)
        for name in dict.fromkeys([*weights, *named])
    }


def sign(y: bool) -> float:
    return 1.0 if y else -1.0


class Textbook:
    """A textbook learner: `score` published, `plain` asked when the label comes, `learn`, `seen` afterwards."""

    tie = "mistake"
    edges: tuple[float, ...] = ()
    """Sizes of a score at which rounding decides, where the textbook rounds otherwise than the learner."""

    def score(self, x: Features) -> Any:
        return self.plain(x)

    def plain(self, x: Features) -> Any:
        raise NotImplementedError

    def predict(self, score: Any) -> Any:
        return score > 0 if self.tie != "positive" else score >= 0

    def must(self, x: Features, y: Any) -> bool:
        if self.tie == "mistake":
            return bool(sign(y) * self.plain(x) <= 0)
        return bool(self.predict(self.plain(x)) != y)

    def learn(self, x: Features, y: Any) -> None:
        raise NotImplementedError

    def seen(self) -> None:
        """One more example has its label."""

    def length(self, x: Features) -> float:
        return sqrt(sum(value * value for _, value in x))


class Perceptron(Textbook):
    """w <- w + r y x."""

    def __init__(self, rate: float = 1.0, tie: str = "mistake") -> None:
        self.rate, self.tie, self.w = rate, tie, Vector()

    def plain(self, x: Features) -> float:
        return dot(self.w, x)

    def learn(self, x: Features, y: bool) -> None:
        self.w = added(self.w, x, self.rate * sign(y))


class Averaged(Perceptron):
    """a <- a + w after each example."""

    def __init__(self, rate: float = 1.0, tie: str = "mistake") -> None:
        super().__init__(rate, tie)
        self.a = Vector()

    def score(self, x: Features) -> float:
        return dot(self.a, x)

    def seen(self) -> None:
        self.a = added(self.a, tuple(self.w.items()), 1.0)


class Voted(Perceptron):
    """A list of (w, c); with a budget, the first vectors do not vote."""

    def __init__(self, budget: int | None = None) -> None:
        super().__init__()
        self.budget = budget
        self.vectors: list[list[Any]] = []

    def score(self, x: Features) -> float:
        voting = self.vectors if self.budget is None else self.vectors[-self.budget :]
        return sum(count * sign(dot(w, x) > 0) for w, count in voting)

    def learn(self, x: Features, y: bool) -> None:
        super().learn(x, y)
        self.vectors.append([self.w, 0])

    def seen(self) -> None:
        if self.vectors:
            self.vectors[-1][1] += 1


class Margin(Perceptron):
    """Update while y w.x < margin."""

    def __init__(self, margin: float, rate: float) -> None:
        super().__init__(rate)
        self.margin = margin

    def must(self, x: Features, y: bool) -> bool:
        return sign(y) * dot(self.w, x) < self.margin


class Normalized(Perceptron):
    """Update while y w.x / |w| < gamma/2, and at w = 0."""

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    def must(self, x: Features, y: bool) -> bool:
        norm = sqrt(sum(w * w for w in self.w.values()))
        return norm == 0 or sign(y) * dot(self.w, x) / norm < self.gamma / 2


class PassiveAggressive(Textbook):
    """River's own, without its intercept: BIAS is a feature, and counts in the length."""

    edges = (0.0, 1.0)

    def __init__(self, variant: str, aggressiveness: float) -> None:
        mode = ("PA", "PA-I", "PA-II").index(variant)
        self.river = PAClassifier(C=aggressiveness, mode=mode, learn_intercept=False)

    def plain(self, x: Features) -> float:
        return dot(self.river.weights, x)

    def must(self, x: Features, y: bool) -> bool:
        return self.length(x) > 0 and sign(y) * self.plain(x) < 1

    def learn(self, x: Features, y: bool) -> None:
        self.river.learn_one(dict(x), y)


class ManyClasses(Textbook):
    """One w for each class; + x for the true one, - x for the predicted one."""

    def __init__(self, classes: tuple[str, ...], rate: float = 1.0, averaged: bool = False) -> None:
        self.rate, self.averaged, self.classes = rate, averaged, classes
        self.w = {one: Vector() for one in classes}
        self.a = {one: Vector() for one in classes}

    def score(self, x: Features) -> list[float]:
        return [dot((self.a if self.averaged else self.w)[one], x) for one in self.classes]

    def plain(self, x: Features) -> list[float]:
        return [dot(self.w[one], x) for one in self.classes]

    def predict(self, score: list[float]) -> str:
        best = self.classes[0]
        for one, value in zip(self.classes, score, strict=True):
            if value > score[self.classes.index(best)]:
                best = one
        return best

    def must(self, x: Features, y: str) -> bool:
        return self.predict(self.plain(x)) != y

    def learn(self, x: Features, y: str) -> None:
        wrong = self.predict(self.plain(x))
        self.w[y] = added(self.w[y], x, self.rate)
        self.w[wrong] = added(self.w[wrong], x, -self.rate)

    def seen(self) -> None:
        self.a = {one: added(self.a[one], tuple(self.w[one].items()), 1.0) for one in self.classes}


class Kernel(Textbook):
    """Sum of y K over the mistakes."""

    def __init__(
        self, kernel: Callable[[Vector, Vector], float], tie: str = "mistake", budget: int | None = None
    ) -> None:
        self.kernel, self.tie, self.budget = kernel, tie, budget
        self.mistakes: list[tuple[float, Vector]] = []

    def plain(self, x: Features) -> float:
        return sum(y * self.kernel(z, dict(x)) for y, z in self.mistakes)

    def learn(self, x: Features, y: bool) -> None:
        self.mistakes.append((sign(y), dict(x)))
        if self.budget is not None:
            self.mistakes = self.mistakes[-self.budget :]

    def length(self, x: Features) -> float:
        return sqrt(self.kernel(dict(x), dict(x)))


def inner(x: Vector, z: Vector) -> float:
    return sum(value * z.get(name, 0.0) for name, value in x.items())


def polynomial(degree: int) -> Callable[[Vector, Vector], float]:
    return lambda x, z: (inner(x, z) + 1) ** degree


def radial(width: float) -> Callable[[Vector, Vector], float]:
    return lambda x, z: exp(
        -sum((x.get(name, 0.0) - z.get(name, 0.0)) ** 2 for name in {*x, *z}) / (2 * width**2)
    )


class Winnow(Textbook):
    """w_d <- w_d exp(eta y x_d), all from w0."""

    edges = (0.0,)

    def __init__(self, eta: float, initial: float, threshold: float = 0.0) -> None:
        self.eta, self.initial, self.threshold, self.w = eta, initial, threshold, Vector()

    def plain(self, x: Features) -> float:
        return dot(self.w, x, self.initial) - self.threshold

    def learn(self, x: Features, y: bool) -> None:
        for name, value in x:
            self.w[name] = self.w.get(name, self.initial) * exp(self.eta * sign(y) * value)

    def length(self, x: Features) -> float:
        return max((abs(value) for _, value in x), default=0.0)


class Initial(Winnow):
    """The threshold of an example is what the initial weights score on it."""

    def plain(self, x: Features) -> float:
        return dot(self.w, x, self.initial) - dot({}, x, self.initial)

    def length(self, x: Features) -> float:
        if any(value < 0 for _, value in x):
            return inf
        return sqrt(sum(value for _, value in x) * super().length(x))


class Balanced(Winnow):
    """Winnow on [x; -x]."""

    def plain(self, x: Features) -> float:
        return super().plain(self.doubled(x))

    def learn(self, x: Features, y: bool) -> None:
        super().learn(self.doubled(x), y)

    def doubled(self, x: Features) -> Features:
        return (*x, *((f"-{name}", -value) for name, value in x))


class Littlestone(Textbook):
    """Multiply the active weights by alpha, or divide them, or set them to 0."""

    def __init__(self, alpha: float, threshold: float, zero: bool) -> None:
        self.alpha, self.threshold, self.zero, self.w = alpha, threshold, zero, Vector()

    def plain(self, x: Features) -> float:
        return dot(self.w, x, 1.0) - self.threshold

    def learn(self, x: Features, y: bool) -> None:
        for name, value in x:
            if value:
                old = self.w.get(name, 1.0)
                self.w[name] = old * self.alpha if y else 0.0 if self.zero else old / self.alpha

    def length(self, x: Features) -> float:
        return sum(value for _, value in x)


Literals = frozenset[tuple[str, bool]]


def holds(literals: Literals, x: Features) -> bool:
    named = dict(x)
    return all(bool(named.get(name)) is positive for name, positive in literals)


class Elimination(Textbook):
    """The conjunction of all literals not yet contradicted; a disjunction is the denial of one of denials."""

    def __init__(self, name: str) -> None:
        self.denied = "disjunctions" in name
        signs = (not self.denied,) if "monotone" in name else (True, False)
        self.left: Literals = frozenset(product(VARIABLES, signs))

    def plain(self, x: Features) -> float:
        return sign(holds(self.left, x) != self.denied)

    def must(self, x: Features, y: bool) -> bool:
        return y != self.denied and not holds(self.left, x)

    def learn(self, x: Features, y: bool) -> None:
        self.left = frozenset(one for one in self.left if holds(frozenset([one]), x))

    def length(self, x: Features) -> float:
        return sum(value for _, value in x)


Concept = Callable[[Features], bool]


def conjunctions(most: int, signs: tuple[bool, ...]) -> list[Concept]:
    return [
        partial(holds, frozenset(zip(names, chosen, strict=True)))
        for size in range(most + 1)
        for names in combinations(VARIABLES, size)
        for chosen in product(signs, repeat=size)
    ]


def thresholds() -> list[Concept]:
    return [lambda x, t=t: sum(value for _, value in x) >= t for t in range(6)]  # type: ignore[misc]


class Con(Textbook):
    """The first concept left, in this order."""

    def __init__(self, concepts: list[Concept]) -> None:
        self.left = concepts

    def plain(self, x: Features) -> float:
        return sign(self.left[0](x)) if self.left else 0.0

    def must(self, x: Features, y: bool) -> bool:
        return any(concept(x) != y for concept in self.left)

    def learn(self, x: Features, y: bool) -> None:
        self.left = [concept for concept in self.left if concept(x) == y]

    def length(self, x: Features) -> float:
        return sum(value for _, value in x)


class Halving(Con):
    """The majority of those left; positive needs more than half."""

    def plain(self, x: Features) -> float:
        return sum(sign(concept(x)) for concept in self.left)

    def must(self, x: Features, y: bool) -> bool:
        return bool(self.left) and (self.plain(x) > 0) != y


REAL, BOOLEAN, CLASSES = "real", "boolean", "classes"
Pair = tuple[str, dict[str, Any], Callable[[], Textbook]]


def _concepts(kind: str, name: str, **learner: Any) -> dict[str, Any]:
    return {"kind": kind, "concepts": name, "variables": VARIABLES, **learner}


PAIRS: Mapping[str, Pair] = {
    "perceptron": (REAL, {"kind": "perceptron"}, Perceptron),
    "perceptron, rate": (REAL, {"kind": "perceptron", "learning_rate": 0.25}, lambda: Perceptron(0.25)),
    "perceptron, positive": (
        REAL,
        {"kind": "perceptron", "tie": "positive"},
        lambda: Perceptron(1, "positive"),
    ),
    "perceptron, negative": (
        REAL,
        {"kind": "perceptron", "tie": "negative"},
        lambda: Perceptron(1, "negative"),
    ),
    "averaged-perceptron": (
        REAL,
        {"kind": "averaged-perceptron", "learning_rate": 0.5},
        lambda: Averaged(0.5),
    ),
    "voted-perceptron": (REAL, {"kind": "voted-perceptron"}, Voted),
    "voted-perceptron, budget": (REAL, {"kind": "voted-perceptron", "budget": 3}, lambda: Voted(3)),
    "margin-perceptron": (
        REAL,
        {"kind": "margin-perceptron", "margin": 0.5, "learning_rate": 0.5},
        lambda: Margin(0.5, 0.5),
    ),
    "normalized-margin-perceptron": (
        REAL,
        {"kind": "normalized-margin-perceptron", "gamma": 0.5},
        lambda: Normalized(0.5),
    ),
    "one-sided-perceptron": (REAL, {"kind": "one-sided-perceptron"}, Perceptron),
    **{
        f"passive-aggressive, {variant}, C = {c}": (
            REAL,
            {"kind": "passive-aggressive", "variant": variant, "aggressiveness": c},
            lambda variant=variant, c=c: PassiveAggressive(variant, c),
        )
        for variant in ("PA", "PA-I", "PA-II")
        for c in (0.1, 1.0)
    },
    "perceptron, classes": (
        CLASSES,
        {"kind": "perceptron", "learning_rate": 0.5},
        lambda: ManyClasses(("p", "q", "r"), 0.5),
    ),
    "averaged-perceptron, classes": (
        CLASSES,
        {"kind": "averaged-perceptron"},
        lambda: ManyClasses(("p", "q", "r"), averaged=True),
    ),
    "kernel-perceptron": (REAL, {"kind": "kernel-perceptron"}, lambda: Kernel(polynomial(2))),
    "kernel-perceptron, degree 3, budget": (
        REAL,
        {"kind": "kernel-perceptron", "degree": 3, "budget": 4},
        lambda: Kernel(polynomial(3), budget=4),
    ),
    "kernel-perceptron, rbf": (
        REAL,
        {"kind": "kernel-perceptron", "kernel": "rbf", "width": 1.5, "tie": "positive"},
        lambda: Kernel(radial(1.5), "positive"),
    ),
    "winnow": (REAL, {"kind": "winnow", "eta": 0.3, "initial_weight": 0.5}, lambda: Initial(0.3, 0.5)),
    "winnow, threshold 0": (
        REAL,
        {"kind": "winnow", "eta": 0.3, "initial_weight": 0.5, "threshold": 0.0},
        lambda: Winnow(0.3, 0.5),
    ),
    "winnow, threshold": (
        REAL,
        {"kind": "winnow", "eta": 0.3, "threshold": 1.0},
        lambda: Winnow(0.3, 1.0, 1.0),
    ),
    "balanced-winnow": (
        REAL,
        {"kind": "balanced-winnow", "eta": 0.3, "initial_weight": 0.5},
        lambda: Balanced(0.3, 0.5),
    ),
    "littlestone-winnow": (
        BOOLEAN,
        {"kind": "littlestone-winnow", "threshold": 2.0},
        lambda: Littlestone(2.0, 2.0, zero=False),
    ),
    "littlestone-winnow, alpha 4, zero": (
        BOOLEAN,
        {"kind": "littlestone-winnow", "threshold": 2.0, "alpha": 4.0, "demotion": "zero"},
        lambda: Littlestone(4.0, 2.0, zero=True),
    ),
    **{
        f"elimination, {name}": (
            BOOLEAN,
            _concepts("elimination", name),
            lambda name=name: Elimination(name),
        )
        for name in ("monotone-conjunctions", "conjunctions", "monotone-disjunctions", "disjunctions")
    },
    **{
        f"{kind}, {name}": (
            BOOLEAN,
            _concepts(kind, name),
            lambda textbook=textbook, made=made: textbook(made()),
        )
        for kind, textbook in (("con", Con), ("halving", Halving))
        for name, made in (
            ("monotone-conjunctions", lambda: conjunctions(4, (True,))),
            ("conjunctions", lambda: conjunctions(4, (True, False))),
            ("k-conjunctions:2", lambda: conjunctions(2, (True, False))),
            ("thresholds", thresholds),
        )
    },
}


def test_every_kind_has_its_textbook() -> None:
    """A learner without one would be missing below."""
    assert {learner["kind"] for _, learner, _ in PAIRS.values()} == set(KINDS)


def settings_of(form: str, learner: Mapping[str, Any]) -> Settings:
    labels = {"classes": ["p", "q", "r"]} if form == CLASSES else {}
    return Settings.model_validate({"learner": learner, "labels": labels})


def rows(form: str, seed: int, noise: float, count: int = 40) -> Iterator[tuple[Features, Any]]:
    """Decoded examples, BIAS last where they are real, and labels; a few of these are wrong."""
    random = Random(seed)
    weights = [random.choice((-1, -0.5, 0.5, 1)) for _ in range(4)]
    target: Any = (conjunctions(2, (True, False)) + thresholds())[random.randrange(39)]
    for _ in range(count):
        if form == BOOLEAN:
            x: Features = tuple((name, float(random.random() < 0.6)) for name in VARIABLES)
            x = tuple(pair for pair in x if pair[1] or random.random() < 0.3)
            y: Any = bool(target(x))
        else:
            values = [random.choice((-1.0, -0.5, 0.0, 0.5, 1.0)) for _ in "abc"]
            x = (
                *((name, v) for name, v in zip("abc", values, strict=True) if random.random() < 0.8),
                ("BIAS", 1.0),
            )
            score = sum(w * value for w, (_, value) in zip(weights, x, strict=False))
            y = score > 0
            if form == CLASSES:
                y = "p" if score > 0.5 else "q" if score > -0.5 else "r"
        if random.random() < noise:
            y = random.choice("pqr") if form == CLASSES else not y
        yield x, y


def agree(one: Any, other: Any) -> bool:
    return bool(one == pytest.approx(other, rel=1e-9, abs=1e-9))


def rounded(textbook: Textbook, one: Any, other: Any) -> bool:
    """Whether a score would lie at an edge without rounding: then rounding decides above or below."""
    return any(abs(abs(other) - edge) < 1e-9 for edge in textbook.edges) and not one == other == 0


def compare(one: Learner, textbook: Textbook, stream: Iterator[tuple[Features, Any]], partitions: int) -> int:
    """Raises AssertionError at the first difference; returns the updates."""
    updates = 0
    for number, (x, y) in enumerate(stream):
        score = textbook.score(x)
        found = one.score(x, number)
        assert agree(found, score), f"example {number}"
        plain = textbook.plain(x)
        amount, predicted = one.decide(x, y)
        if not rounded(textbook, found, score):
            assert one.predict(found) == textbook.predict(score), f"example {number}"
        if not rounded(textbook, found, plain):
            assert bool(amount) is textbook.must(x, y), f"example {number}"
            assert predicted == textbook.predict(plain), f"example {number}"
        assert agree(one.length(x), textbook.length(x)), f"example {number}"
        if amount:
            updates += 1
            textbook.learn(x, y)
            one.fold(number % partitions, x, y, number + 1, predicted, amount)
        textbook.seen()
    return updates


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", [0, *long(*range(1, 8))])
def test_a_learner_does_what_its_textbook_does(name: str, partitions: int, seed: int) -> None:
    """Every score, class, update and length, with some labels wrong; on any number of partitions."""
    form, learner, textbook = PAIRS[name]
    if KINDS[learner["kind"]].one_partition is not None or learner.get("budget"):
        partitions = 1
    noise = 0.1 if seed % 2 else 0.0
    compare(make(settings_of(form, learner), partitions), textbook(), rows(form, seed, noise), partitions)


@pytest.mark.parametrize("positive", [True, False])
def test_a_score_at_the_margin_is_far_enough(positive: bool) -> None:
    """Both margin learners update below it, not at it."""
    y = positive
    x: Features = (("a", 1.0 if positive else -1.0),)
    margin = make(settings_of(REAL, {"kind": "margin-perceptron", "margin": 1.0}), 1)
    normalized = make(settings_of(REAL, {"kind": "normalized-margin-perceptron", "gamma": 1.0}), 1)
    for one in (margin, normalized):
        assert one.decide(x, y)[0]
        one.fold(0, x, y, 1, None)
    assert not margin.decide(x, y)[0]
    half: Features = (("a", 0.5 * x[0][1]), ("b", sqrt(0.75)))
    assert not normalized.decide(half, y)[0]
    assert normalized.decide((("a", 0.49 * x[0][1]), ("b", sqrt(0.75))), y)[0]


def test_winnows_weights_stand_still_where_float64_ends() -> None:
    """exp(700) is the largest factor; theta goes on."""
    for kind in ("winnow", "balanced-winnow"):
        one = make(settings_of(REAL, {"kind": kind, "eta": 1.0}), 1)
        for number in range(900):
            one.fold(0, (("a", 1.0),), True, number, None)
            if number < 699:
                assert one.score((("a", 1.0),), 0) == pytest.approx(exp(number + 1), rel=1e-9, abs=2)
        assert one.score((("a", 1.0),), 0) == pytest.approx(exp(700))
        assert one.theta() == {"a": 900.0}


def test_a_weight_set_to_zero_stays_there() -> None:
    """Demotion to zero is for good, whatever is promoted later."""
    one = make(settings_of(BOOLEAN, PAIRS["littlestone-winnow, alpha 4, zero"][1]), 2)
    one.fold(0, (("0", 1.0), ("1", 1.0)), False, 1, None)
    one.fold(1, (("0", 1.0), ("2", 1.0)), True, 2, None)
    assert one.score((("0", 1.0),), 0) == -2.0
    assert one.score((("0", 1.0), ("2", 1.0)), 0) == 2.0
    assert one.theta()["0"] == -inf


def test_the_first_hypothesis_of_elimination_is_all_literals() -> None:
    """Monotone: only the example with every variable is positive; with both signs: none."""
    every = tuple((name, 1.0) for name in VARIABLES)
    for name, expected in (
        ("monotone-conjunctions", [False, False, True]),
        ("conjunctions", [False, False, False]),
        ("monotone-disjunctions", [False, True, True]),
        ("disjunctions", [True, True, True]),
    ):
        one = make(settings_of(BOOLEAN, _concepts("elimination", name)), 1)
        assert [one.score(every[:size], 0) > 0 for size in (0, 1, 4)] == expected, name


def test_no_concept_left_predicts_negative_and_has_nothing_to_learn() -> None:
    """CON and Halving after labels that no concept explains."""
    for kind in ("con", "halving"):
        one = make(settings_of(BOOLEAN, _concepts(kind, "monotone-conjunctions")), 2)
        every = tuple((name, 1.0) for name in VARIABLES)
        one.fold(0, every, False, 1, None)
        assert one.score(every, 0) == 0.0
        assert one.decide(every, True) == (False, False)
        assert not one.predict(0.0)


def test_con_with_a_seed_ranks_otherwise_and_the_same_each_time() -> None:
    """Two seeds differ somewhere; one seed never."""
    learner = _concepts("con", "conjunctions")
    stream = [x for x, _ in rows(BOOLEAN, 5, 0.0)]

    def scores(seed: int | None) -> list[float]:
        one = make(settings_of(BOOLEAN, {**learner, "ranking_seed": seed}), 1)
        return [one.score(x, 0) for x in stream]

    assert scores(1) == scores(1)
    assert len({tuple(scores(seed)) for seed in (None, 1, 2, 3, 4, 5)}) > 1


@pytest.mark.parametrize("name", PAIRS)
def test_a_length_counts_negative_values_by_their_size(name: str) -> None:
    """Where the largest value is negative, too: the R of a bound must not be too small."""
    form, learner, textbook = PAIRS[name]
    x: Features = (("0", 1.0), ("2", 1.0)) if form == BOOLEAN else (("a", -3.0), ("BIAS", 1.0))
    assert agree(make(settings_of(form, learner), 1).length(x), textbook().length(x))
