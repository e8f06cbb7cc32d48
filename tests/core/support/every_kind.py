"""Every learner in every form that is worth a test: valid settings, and examples that suit it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from mistakebound.core.learners import KINDS, Learner, make
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import LabelValue, Settings

VARIABLES = ("a", "b", "c", "d")
REALS = (1.0, -2.5, 0.1, 3.0, 0.0)
BOOLEAN = {"bias": False}
UNIT = {"normalize": "unit"}

TENANTS = ("acme", "a|b", 7)

Raw = dict[str, float]


@dataclass(frozen=True)
class Case:
    """`truth` is what the labels follow, where there is no noise."""

    settings: Settings
    truth: Callable[[Raw], LabelValue]

    @property
    def kind(self) -> str:
        return self.settings.learner.kind

    @property
    def labels(self) -> tuple[LabelValue, ...]:
        """All that a label may be."""
        return declared(self.settings.labels) or ("ape", "bee", "cat")

    @property
    def binary(self) -> bool:
        return len(declared(self.settings.labels)) == 2

    def partitions(self, wished: int) -> int:
        """As many as wished, or the one that the learner can work with."""
        return wished if KINDS[self.kind].one_partition is None else 1

    def learner(self, partitions: int) -> Learner:
        """A new one."""
        return make(self.settings, self.partitions(partitions))

    def features(self, random: Random) -> Raw:
        """One example as JSON values, some features left out."""
        values: tuple[float, ...] = (0, 1) if KINDS[self.kind].boolean else REALS
        return {name: random.choice(values) for name in VARIABLES if random.random() < 0.8}

    def tenant(self, random: Random) -> Any:
        """Whose an example is, where the settings ask for that; else None."""
        return random.choice(TENANTS) if self.settings.features.cross else None

    def whose(self, random: Random) -> dict[str, Any]:
        """What an example's message has beside id and features."""
        return {"tenant": self.tenant(random)} if self.settings.features.cross else {}

    def row(self, random: Random, noise: float = 0.05) -> tuple[Raw, LabelValue]:
        """An example and its label, which is wrong now and then."""
        x = self.features(random)
        return x, random.choice(self.labels) if random.random() < noise else self.truth(x)

    def vectors(self, values: st.SearchStrategy[float]) -> st.SearchStrategy[Features]:
        """Decoded features with these values, or with 0 and 1 where the learner is Boolean."""
        if KINDS[self.kind].boolean:
            values = st.sampled_from([0.0, 1.0])
        names = st.sampled_from(VARIABLES)
        return st.dictionaries(names, values, max_size=4).map(lambda x: tuple(x.items()))

    def updates(
        self, values: st.SearchStrategy[float], partitions: int = 3, most: int = 16
    ) -> st.SearchStrategy[list[tuple[int, Features, Any, int, Any]]]:
        """Logged updates as `fold` takes them: (partition, x, label, clock, predicted)."""
        classes: Any = st.booleans() if self.binary else st.sampled_from(self.labels)
        predicted = classes if self.binary else classes | st.none()
        places = st.integers(0, self.partitions(partitions) - 1)
        one = st.tuples(places, self.vectors(values), classes, st.integers(1, 99), predicted)
        return st.lists(one.filter(lambda update: update[2] != update[4] or self.binary), max_size=most)


def _slope(x: Raw) -> bool:
    return x.get("a", 0) - x.get("b", 0) + 0.5 > 0


def _heavy(x: Raw) -> bool:
    return x.get("a", 0) + x.get("c", 0) > 1.5


def _both(x: Raw) -> bool:
    return x.get("a", 0) == 1 and x.get("b", 0) == 1


def _either(x: Raw) -> bool:
    return x.get("a", 0) == 1 or x.get("b", 0) == 1


def _two(x: Raw) -> bool:
    return sum(x.values()) >= 2


def _best(x: Raw) -> LabelValue:
    return max((x.get("a", 0), "ape"), (x.get("b", 0), "bee"), (0.5, "cat"))[1]


def _case(
    kind: str,
    truth: Callable[[Raw], LabelValue] = _slope,
    features: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    predictions: Mapping[str, Any] | None = None,
    **learner: Any,
) -> Case:
    settings = Settings.model_validate(
        {
            "learner": {"kind": kind, **learner},
            "features": features or {},
            "labels": labels or {},
            "predictions": predictions or {},
        }
    )
    return Case(settings, truth)


THREE = {"classes": ["bee", "ape", "cat"]}
OPEN = {"classes": "open"}
COSTLY = {"costs": {"false_positive": 0.3, "false_negative": 25}}
CONCEPTS = {"features": BOOLEAN, "variables": VARIABLES}

_CHOSEN: Mapping[str, Case] = {
    "perceptron": _case("perceptron"),
    "perceptron, learning rate": _case("perceptron", learning_rate=0.1, tie="negative"),
    "perceptron, three classes": _case("perceptron", _best, labels=THREE),
    "perceptron, open classes": _case("perceptron", _best, labels=OPEN),
    "averaged perceptron": _case("averaged-perceptron"),
    "averaged perceptron, three classes": _case("averaged-perceptron", _best, labels=THREE),
    "averaged perceptron, open classes": _case("averaged-perceptron", _best, labels=OPEN),
    "perceptron, tenants": _case("perceptron", features={"cross": "/tenant", "cross_shared": True}),
    "averaged perceptron, tenants": _case("averaged-perceptron", features={"cross": "/tenant", **UNIT}),
    "perceptron, columns": _case("perceptron", features={"include": ["a", "/b", "c"], "exclude": ["c*"]}),
    "perceptron, costs": _case("perceptron", labels=COSTLY, cost_sensitive=True),
    "averaged perceptron, costs": _case("averaged-perceptron", labels=COSTLY, cost_sensitive=True, window=9),
    "averaged perceptron, three classes, costs": _case(
        "averaged-perceptron",
        _best,
        labels={**THREE, "costs": {"ape": {"bee": 2.5, "cat": 0.1}, "cat": {"ape": 7}}},
        cost_sensitive=True,
    ),
    "perceptron, window": _case("perceptron", window=3),
    "perceptron, open classes, window": _case("perceptron", _best, labels=OPEN, window=2),
    "averaged perceptron, window": _case("averaged-perceptron", window=2),
    "averaged perceptron, three classes, window": _case(
        "averaged-perceptron", _best, labels=THREE, window=22
    ),
    "perceptron, restart": _case("perceptron", gamma=0.6, on_refuted="restart"),
    "averaged perceptron, restart": _case("averaged-perceptron", gamma=0.6, on_refuted="restart"),
    "perceptron, labels asked for": _case("perceptron", labels={"ask": 0.8, "ask_seed": 3}),
    "balanced winnow, labels asked for": _case("balanced-winnow", labels={"ask": 0.8}),
    "averaged perceptron, probabilities": _case("averaged-perceptron", predictions={"probability": True}),
    "perceptron, labels asked for, probabilities": _case(
        "perceptron", labels={"ask": 2.0}, predictions={"probability": True}
    ),
    "littlestone winnow, zero, window": _case(
        "littlestone-winnow", _either, BOOLEAN, threshold=2.0, demotion="zero", relevant=2, window=2
    ),
    "voted perceptron": _case("voted-perceptron"),
    "voted perceptron, budget": _case("voted-perceptron", budget=3),
    "margin perceptron": _case("margin-perceptron", margin=0.7, learning_rate=0.5),
    "normalized margin perceptron": _case("normalized-margin-perceptron", features=UNIT, gamma=0.1),
    "one-sided perceptron": _case("one-sided-perceptron", features=UNIT),
    "kernel perceptron": _case("kernel-perceptron"),
    "kernel perceptron, rbf": _case("kernel-perceptron", kernel="rbf", width=2.0, tie="positive"),
    "kernel perceptron, budget": _case("kernel-perceptron", degree=3, budget=3),
    "winnow": _case("winnow"),
    "winnow, threshold": _case("winnow", _heavy, threshold=1.5),
    "balanced winnow": _case("balanced-winnow", eta=0.3),
    "littlestone winnow": _case("littlestone-winnow", _either, BOOLEAN, threshold=2.0),
    "littlestone winnow, zero": _case(
        "littlestone-winnow", _either, BOOLEAN, threshold=2.0, demotion="zero", relevant=2
    ),
    "elimination": _case("elimination", _both, BOOLEAN),
    "elimination, variables": _case("elimination", _both, **CONCEPTS),
    "elimination, conjunctions": _case("elimination", _both, concepts="conjunctions", **CONCEPTS),
    "elimination, monotone disjunctions": _case(
        "elimination", _either, BOOLEAN, concepts="monotone-disjunctions"
    ),
    "elimination, disjunctions": _case("elimination", _either, concepts="disjunctions", **CONCEPTS),
    "con": _case("con", _both, concepts="monotone-conjunctions", **CONCEPTS),
    "con, seeded ranking": _case("con", _both, concepts="k-conjunctions:2", ranking_seed=7, **CONCEPTS),
    "con, thresholds": _case("con", _two, concepts="thresholds", **CONCEPTS),
    "halving": _case("halving", _both, concepts="conjunctions", **CONCEPTS),
    "halving, table": _case(
        "halving",
        _either,
        BOOLEAN,
        concepts="table:0000000000000000,0101010101010101,0111011101110111,1111111111111111",
        variables=VARIABLES,
    ),
}
CASES: Mapping[str, Case] = _CHOSEN | {
    name: _case(name, features=UNIT if kind.unit else None)
    for name, kind in KINDS.items()
    if name not in {case.kind for case in _CHOSEN.values()}
}
"""A kind that needs nothing has a case without being named here."""

FORMS = {case.kind: name for name, case in reversed(CASES.items())}
"""One form of each kind: the first in the table."""
MORE = (
    "perceptron, open classes",
    "averaged perceptron, three classes",
    "kernel perceptron, budget",
    "littlestone winnow, zero",
    "elimination, disjunctions",
)
"""Forms whose state has another shape."""


QUICK = (
    *FORMS.values(),
    "perceptron, open classes",
    "perceptron, tenants",
    "perceptron, columns",
    "averaged perceptron, costs",
)


def parameters(names: Iterable[str]) -> list[Any]:
    """Cases by name; without --long one of each kind, and one of open classes."""
    return [
        pytest.param(CASES[name], id=name, marks=() if name in QUICK else pytest.mark.long) for name in names
    ]


EVERY_CASE = pytest.mark.parametrize("case", parameters(CASES))
