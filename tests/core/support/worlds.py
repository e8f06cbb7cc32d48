"""Data that meets a theorem's assumptions, one world for each learner, from a seed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, sqrt
from random import Random
from typing import Any

from mistakebound.core.learners import KINDS
from mistakebound.core.messages.features import Features, reader
from mistakebound.settings import Settings

Rows = list[tuple[Any, Any]]
"""(features as JSON values, label)."""


@dataclass(frozen=True)
class World:
    """Settings with everything declared that the bound needs, rows, and what is true of them."""

    settings: Settings
    rows: Rows
    margin: float | None = None
    """The separator's, in the learner's own space."""
    separator: Mapping[str, float] = field(default_factory=dict)
    """Linear learners of two classes: of length 1 as their theorem measures it."""
    radius: float = 0.0
    """Linear learners of two classes: the largest length of an example."""


def _settings(learner: Mapping[str, Any], **sections: Any) -> Settings:
    return Settings.model_validate({"learner": learner, **sections})


def _decoded(raw: Any, settings: Settings) -> Features:
    return reader(settings.features)(json.dumps(raw).encode())


def linear(
    seed: int,
    *,
    length: float = 2,
    positive: bool = False,
    rows: int = 60,
    wanted: float = 0.08,
    signed: bool = True,
    **learner: Any,
) -> World:
    """Separable through the origin, BIAS counted; `length` 1: ||u||_1 = 1 and examples by their largest value.

    Not `signed`: no feature is negative, and examples are measured by sqrt(||x||_1 ||x||_inf).
    """
    random = Random(seed)
    unit = KINDS[learner["kind"]].unit
    bias = not positive
    names = ["a", "b", "c", "d"]
    every = [*names, "BIAS"] if bias else names
    weights = [abs(random.gauss(0, 1)) if positive else random.gauss(0, 1) for _ in every]
    size = sum(abs(w) ** length for w in weights) ** (1 / length)
    separator = {name: w / size for name, w in zip(every, weights, strict=True)}
    sections = {"features": {"bias": bias, "normalize": "unit" if unit else "none"}}
    draft = _settings({"gamma": wanted, **learner}, **sections)
    found: Rows = []
    margin, radius = 1e9, 0.0
    while len(found) < rows:
        raw = {
            name: random.choice((random.uniform(-1, 1), random.choice((-1.0, 0.0, 1.0)))) for name in names
        }
        if not signed:
            raw = {name: abs(value) for name, value in raw.items()}
        x = _decoded(raw, draft)
        score = sum(separator[name] * value for name, value in x)
        if abs(score) >= wanted:
            found.append((raw, score > 0))
            margin = min(margin, abs(score))
            by_length = sqrt(sum(v * v for _, v in x)) if length == 2 else max(abs(v) for _, v in x)
            if not signed:
                by_length = sqrt(by_length * sum(v for _, v in x))
            radius = max(radius, by_length)
    margin *= 1 - 1e-12
    return World(_settings({"gamma": margin, **learner}, **sections), found, margin, separator, radius)


def many_classes(seed: int, kind: str = "perceptron") -> World:
    """Three classes, each the largest of its row's score by gamma; ||U||_F = 1."""
    random = Random(seed)
    names, classes = ["a", "b", "BIAS"], ["red", "green", "blue"]
    rows_of = {one: [random.gauss(0, 1) for _ in names] for one in classes}
    size = sqrt(sum(w * w for row in rows_of.values() for w in row))
    found: Rows = []
    margin = 1e9
    while len(found) < 60:
        x = [random.uniform(-2, 2), random.uniform(-2, 2), 1.0]
        scores = {one: sum(w * v for w, v in zip(row, x, strict=True)) / size for one, row in rows_of.items()}
        first, second = sorted(classes, key=lambda one: -scores[one])[:2]
        if scores[first] - scores[second] >= 0.1:
            margin = min(margin, scores[first] - scores[second])
            found.append(({"a": x[0], "b": x[1]}, first))
    margin *= 1 - 1e-12
    settings = _settings({"kind": kind, "gamma": margin}, labels={"classes": classes})
    return World(settings, found, margin)


def circle(seed: int, **learner: Any) -> World:
    """Inside the unit circle is positive: linear in the space of (x.z + 1)^2."""
    random = Random(seed)
    found: Rows = []
    margin = 1e9
    while len(found) < 40:
        a, b = random.uniform(-1.6, 1.6), random.uniform(-1.6, 1.6)
        distance = (1 - a * a - b * b) / sqrt(3)
        if abs(distance) > 0.15:
            margin = min(margin, abs(distance))
            found.append(({"a": a, "b": b}, distance > 0))
    margin *= 1 - 1e-12
    settings = {"kind": "kernel-perceptron", "kernel": "polynomial", "degree": 2, "gamma": margin, **learner}
    return World(_settings(settings, features={"bias": False}), found, margin)


def bumps(seed: int) -> World:
    """Nearer to one of two centres: separable in the space of the radial kernel."""
    random = Random(seed)

    def near(x: tuple[float, float], centre: tuple[float, float]) -> float:
        return exp(-((x[0] - centre[0]) ** 2 + (x[1] - centre[1]) ** 2) / 2)

    one, other = (1.0, 0.0), (-1.0, 0.5)
    size = sqrt(2 - 2 * near(one, other))
    found: Rows = []
    margin = 1e9
    while len(found) < 40:
        x = (random.uniform(-2, 2), random.uniform(-2, 2))
        score = (near(x, one) - near(x, other)) / size
        if abs(score) > 0.15:
            margin = min(margin, abs(score))
            found.append(({"a": x[0], "b": x[1]}, score > 0))
    margin *= 1 - 1e-12
    settings = {"kind": "kernel-perceptron", "kernel": "rbf", "width": 1.0, "gamma": margin}
    return World(_settings(settings, features={"bias": False}), found, margin)


def disjunction(seed: int, variables: int = 30, relevant: int = 3, **learner: Any) -> World:
    """Positive where one of the first variables is true; about half are."""
    random = Random(seed)
    found: Rows = []
    for _ in range(150):
        positive = random.random() < 0.5
        x = {str(place): 1 for place in range(relevant, variables) if random.random() < 0.5}
        if positive:
            x |= {str(random.randrange(relevant)): 1 for _ in range(random.randint(1, 2))}
        found.append((x, positive))
    settings = {"kind": "littlestone-winnow", "variables": variables, "relevant": relevant, **learner}
    return World(_settings(settings, features={"bias": False}), found)


def concept(seed: int, kind: str, name: str, variables: int = 4, target: Any = None, **learner: Any) -> World:
    """A random concept of the class, and random examples, the informative ones often among them."""
    random = Random(seed)
    if target is None:
        target = _target(random, name, variables)
    found: Rows = []
    for _ in range(60):
        active = {place for place in range(variables) if random.random() < random.choice((0.5, 0.8))}
        found.append(({str(place): 1 for place in active}, target(active)))
    settings = {"kind": kind, "concepts": name, "variables": variables, **learner}
    return World(_settings(settings, features={"bias": False}), found)


def _target(random: Random, name: str, variables: int) -> Callable[[set[int]], bool]:
    signs = {place: random.choice((True, False, None)) for place in range(variables)}
    if name.startswith("k-"):
        signs = dict(random.sample(sorted(signs.items(), key=lambda pair: pair[0]), 2))
    if "monotone" in name:
        signs = {place: sign or None for place, sign in signs.items()}
    literals = {place: sign for place, sign in signs.items() if sign is not None}
    if name == "thresholds":
        least = random.randint(0, variables + 1)
        return lambda active: len(active) >= least
    if "disjunctions" in name:
        return lambda active: any((place in active) is sign for place, sign in literals.items())
    return lambda active: all((place in active) is sign for place, sign in literals.items())


_CHOSEN: Mapping[str, Callable[[int], World]] = {
    "perceptron": lambda seed: linear(seed, kind="perceptron"),
    "perceptron, rate 0.1, ties positive": lambda seed: linear(
        seed, kind="perceptron", learning_rate=0.1, tie="positive"
    ),
    "margin-perceptron": lambda seed: linear(seed, kind="margin-perceptron", margin=0.5, learning_rate=0.5),
    **{
        f"passive-aggressive, {variant}": lambda seed, variant=variant: linear(
            seed, kind="passive-aggressive", variant=variant, aggressiveness=0.5
        )
        for variant in ("PA", "PA-I", "PA-II")
    },
    "multiclass": many_classes,
    "multiclass, averaged": lambda seed: many_classes(seed, "averaged-perceptron"),
    "kernel-perceptron, polynomial": circle,
    "kernel-perceptron, rbf": bumps,
    "winnow": lambda seed: linear(seed, length=1, signed=False, kind="winnow", eta=0.02),
    "winnow, threshold 0": lambda seed: linear(
        seed, length=1, positive=True, kind="winnow", threshold=0, eta=0.05, wanted=0.05
    ),
    "balanced-winnow": lambda seed: linear(seed, length=1, kind="balanced-winnow", eta=0.05, wanted=0.05),
    "littlestone-winnow, divide": lambda seed: disjunction(seed, threshold=15),
    "littlestone-winnow, divide, alpha 1.5": lambda seed: disjunction(seed, threshold=30, alpha=1.5),
    "littlestone-winnow, zero": lambda seed: disjunction(seed, threshold=15, demotion="zero"),
    **{
        f"elimination, {name}": lambda seed, name=name: concept(seed, "elimination", name)
        for name in ("monotone-conjunctions", "conjunctions", "monotone-disjunctions", "disjunctions")
    },
    **{
        f"{kind}, {name}": lambda seed, kind=kind, name=name: concept(seed, kind, name)
        for kind in ("con", "halving")
        for name in ("monotone-conjunctions", "conjunctions", "k-conjunctions:2", "thresholds")
    },
    "con, shuffled": lambda seed: concept(seed, "con", "conjunctions", ranking_seed=7),
}
_COVERED = {name.partition(",")[0] for name in _CHOSEN}
WORLDS: Mapping[str, Callable[[int], World]] = _CHOSEN | {
    name: lambda seed, name=name: linear(seed, kind=name) for name in KINDS if name not in _COVERED
}
"""A perceptron that needs nothing but a margin has a world without being named here."""
