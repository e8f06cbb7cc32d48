"""The cost-sensitive perceptron: what its updates cost is bounded where a margin separates the classes."""

import json
from collections.abc import Sequence
from math import sqrt
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mistakebound.core.messages.schema import Update
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.core.theorems.claims import claims
from mistakebound.settings import Settings
from tests.core.support.feeding import Feeder

NAMES = "abcd"


def settings_for(costs: Any, gamma: float | None = None, **learner: Any) -> Settings:
    return Settings.model_validate(
        {
            "learner": {"kind": "perceptron", "cost_sensitive": True, "gamma": gamma, **learner},
            "features": {"bias": False},
            "labels": {"costs": costs},
        }
    )


def separable(random: Random, count: int, margin: float) -> tuple[list[Row], float]:
    """Rows that a unit vector separates by the margin at least, and the largest length among them."""
    u = [random.gauss(0, 1) for _ in NAMES]
    size = sqrt(sum(w * w for w in u))
    rows: list[Row] = []
    radius = 0.0
    while len(rows) < count:
        x = [random.uniform(-1, 1) for _ in NAMES]
        score = sum(w * v for w, v in zip(u, x, strict=True)) / size
        if abs(score) >= margin:
            rows.append(Row(str(len(rows)), dict(zip(NAMES, x, strict=True)), score > 0))
            radius = max(radius, sqrt(sum(v * v for v in x)))
    return rows, radius


def replayed(rows: Sequence[Row], settings: Settings, delay: int) -> tuple[State, list[Any]]:
    """The state, and the amounts of all updates."""
    amounts: list[Any] = []

    def see(step: Step) -> None:
        amounts.extend(
            json.loads(output.value or b"").get("amount", 1.0)
            for output in step.transaction.outputs
            if output.topic == "updates"
        )

    return replay_rows(rows, settings, 1, delay, taken=see), amounts


@given(
    st.integers(0, 10**6),
    st.floats(0.05, 20),
    st.floats(0.05, 20),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.integers(0, 20),
    st.sampled_from(["perceptron", "averaged-perceptron"]),
)
def test_the_cost_of_updates_is_at_most_the_dearest_times_the_squared_ratio(
    seed: int, false_positive: float, false_negative: float, margin: float, delay: int, kind: str
) -> None:
    """C <= c_max (R/gamma)^2, and so U <= (c_max/c_min) (R/gamma)^2; of the dearest mistakes, (R/gamma)^2."""
    rows, radius = separable(Random(seed), 80, margin)
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    state, amounts = replayed(rows, settings_for(costs, margin, kind=kind), delay)
    dearest, cheapest = max(costs.values()), min(costs.values())
    plain = (radius / margin) ** 2
    assert sum(amounts) <= dearest * plain * (1 + 1e-9)
    assert sum(amount == dearest for amount in amounts) <= plain * (1 + 1e-9)
    assert len(amounts) <= dearest / cheapest * plain * (1 + 1e-9)
    for bound in claims(state.model, [state.ledgers[0].tallies.epoch]):
        assert bound.holds, bound
        assert bound.name == "Novikoff, with costs"
    report = report_of(state)
    assert report.margin_upper_bound is None or report.margin_upper_bound >= margin * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_models_that_lacked_updates_are_allowed_for(seed: int) -> None:
    """Two workers that follow each other late: each decides by a model without the other's newest updates."""
    random = Random(seed)
    rows, _ = separable(random, 120, 0.1)
    settings = settings_for({"false_negative": 9}, 0.1)
    sections = settings.model_dump(include={"learner", "features", "labels"})
    workers = [Feeder(2, **sections) for _ in range(2)]
    behind: list[list[Any]] = [[], []]
    for number, row in enumerate(rows):
        p = number % 2
        f = workers[p]
        fed = f.feed(
            f.example(row.id, number, row.features, partition=p),
            f.label(row.id, number, row.label, partition=p),
        )
        behind[1 - p] += fed.updates
        if random.random() < 0.2:
            for q in (0, 1):
                follow(workers[q], behind[q])
    for q in (0, 1):
        follow(workers[q], behind[q])
    first, other = (f.model for f in workers)
    assert first.digest() == other.digest()
    (bound,) = [
        one for one in claims(first, [f.ledger.tallies.epoch for f in workers]) if one.of == "updates"
    ]
    assert bound.holds
    assert ("missing" in bound.assumes) is bool(first.missing)


def follow(feeder: Feeder, updates: list[Any]) -> None:
    feeder.model.begin()
    for one in updates:
        update = msgspec.convert({**one, "features": Raw(json.dumps(one["features"]).encode())}, Update)
        feeder.model.follow(int(one["id"]) % 2, update)
    updates.clear()


def test_a_cost_of_1_each_changes_nothing() -> None:
    """Not a bit, and no record has an amount."""
    rows, _ = separable(Random(5), 100, 0.02)
    plain = Settings.model_validate({"learner": {"kind": "perceptron"}, "features": {"bias": False}})
    priced, amounts = replayed(rows, settings_for({"false_negative": 1}), 7)
    assert priced.model.digest() == replay_rows(rows, plain, 1, 7).model.digest()
    assert set(amounts) == {1.0}


def test_dearer_mistakes_become_rarer() -> None:
    """The aim of it all: where no line is right, it is the dear mistakes that are avoided."""
    random = Random(2)
    rows = [
        Row(str(n), {"a": random.gauss(1 if n % 2 else -1, 1.5), "one": 1.0}, n % 2 == 1)
        for n in range(2_000)
    ]
    found = [report_of(replayed(rows, settings_for({"false_negative": cost}), 0)[0]) for cost in (1, 20)]
    missed = [
        one.confusion.by_class["true"].labelled - one.confusion.by_class["true"].correct for one in found
    ]
    assert missed[1] < missed[0] / 2
    assert found[0].confusion.model.cost == found[0].mistakes
    assert found[1].confusion.model.cost == found[1].mistakes + 19 * missed[1]


def test_many_classes_have_twice_the_bound() -> None:
    """As without costs, times the dearest over the cheapest."""
    random = Random(4)
    rows = []
    for number in range(150):
        label = random.choice("abc")
        rows.append(
            Row(str(number), {name: random.uniform(0, 0.3) + (name == label) for name in "abc"}, label)
        )
    settings = Settings.model_validate(
        {
            "learner": {"kind": "perceptron", "cost_sensitive": True, "gamma": 0.4},
            "features": {"bias": False},
            "labels": {"classes": ["a", "b", "c"], "costs": {"a": {"b": 0.5}, "c": {"a": 6}}},
        }
    )
    state, amounts = replayed(rows, settings, 0)
    assert set(amounts) <= {0.5, 1.0, 6.0}
    bounds = claims(state.model, [state.ledgers[0].tallies.epoch])
    assert bounds[0].value == pytest.approx(12 * 2 * (state.model.radius / 0.4) ** 2)
    assert sum(amounts) <= 6 * 2 * (state.model.radius / 0.4) ** 2
    assert all(one.holds for one in bounds)
