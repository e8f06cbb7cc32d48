"""Settings that do not go with a learner are named, each with its remedy, before anything runs."""

from typing import Any

import pytest

from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.settings import Settings
from tests.core.support.every_kind import BOOLEAN, OPEN, THREE, UNIT

CROSS = {"cross": "/tenant"}


def refused(
    learner: dict[str, Any], partitions: int | None = None, **sections: Any
) -> list[tuple[str, str, str]]:
    return [
        tuple(one) for one in unmet(Settings.model_validate({"learner": learner, **sections}), partitions)
    ]


@pytest.mark.parametrize(
    ("learner", "sections", "key"),
    [
        ({"kind": "one-sided-perceptron"}, {}, "features.normalize"),
        ({"kind": "normalized-margin-perceptron", "gamma": 0.1}, {}, "features.normalize"),
        ({"kind": "normalized-margin-perceptron"}, {"features": UNIT}, "learner.gamma"),
        ({"kind": "margin-perceptron"}, {}, "learner.margin"),
        ({"kind": "averaged-perceptron", "delay_policy": "issued"}, {}, "learner.delay_policy"),
        ({"kind": "voted-perceptron", "delay_policy": "issued"}, {}, "learner.delay_policy"),
        ({"kind": "littlestone-winnow"}, {"features": BOOLEAN}, "learner.threshold"),
        ({"kind": "littlestone-winnow", "threshold": 2.0}, {}, "features.bias"),
        ({"kind": "littlestone-winnow", "threshold": "initial"}, {"features": BOOLEAN}, "learner.threshold"),
        ({"kind": "elimination"}, {}, "features.bias"),
        ({"kind": "elimination"}, {"features": {**BOOLEAN, **UNIT}}, "features.normalize"),
        ({"kind": "elimination", "concepts": "thresholds"}, {"features": BOOLEAN}, "learner.concepts"),
        ({"kind": "con", "concepts": "thresholds"}, {"features": BOOLEAN}, "learner.variables"),
        ({"kind": "halving", "variables": 3}, {"features": BOOLEAN}, "learner.concepts"),
        ({"kind": "halving", "variables": 3, "concepts": "all"}, {"features": BOOLEAN}, "learner.concepts"),
        ({"kind": "con", "variables": 3, "concepts": "table:01"}, {"features": BOOLEAN}, "learner.concepts"),
        ({"kind": "kernel-perceptron"}, {"features": CROSS}, "features.cross"),
        (
            {"kind": "normalized-margin-perceptron", "gamma": 0.1},
            {"features": {**UNIT, **CROSS}},
            "features.cross",
        ),
        ({"kind": "elimination"}, {"features": {**BOOLEAN, **CROSS}}, "features.cross"),
        (
            {"kind": "littlestone-winnow", "threshold": 2.0, "variables": 4},
            {"features": {**BOOLEAN, **CROSS}},
            "learner.variables",
        ),
        ({"kind": "winnow"}, {"labels": THREE}, "labels.classes"),
        ({"kind": "voted-perceptron"}, {"labels": OPEN}, "labels.classes"),
        (
            {"kind": "perceptron", "cost_sensitive": True},
            {"labels": {"costs": {"false_positive": 1, "more": 1}}},
            "labels.costs",
        ),
    ],
)
def test_one_thing_that_does_not_go_is_one_key(
    learner: dict[str, Any], sections: dict[str, Any], key: str
) -> None:
    """The key, what is wrong with it, and what to do."""
    ((found, wrong, remedy),) = refused(learner, **sections)
    assert found == key
    assert wrong
    assert remedy


def test_the_voted_perceptron_takes_one_partition() -> None:
    """Whatever the settings say, once the log's number is known."""
    assert [key for key, *_ in refused({"kind": "voted-perceptron"}, 2)] == ["log.partitions"]
    assert refused({"kind": "voted-perceptron"}, 1) == []


@pytest.mark.parametrize("kind", ["con", "halving"])
def test_too_many_concepts_name_their_size(kind: str) -> None:
    """3^20 conjunctions."""
    learner = {"kind": kind, "concepts": "conjunctions", "variables": 20}
    ((key, wrong, _),) = refused(learner, features=BOOLEAN)
    assert key == "learner.concepts"
    assert str(3**20) in wrong


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.many is None])
def test_two_classes_are_enough_for_every_learner(kind: str) -> None:
    """More than two are refused by name where they are not known."""
    assert "labels.classes" in [key for key, *_ in refused({"kind": kind}, labels=THREE)]
    assert "labels.classes" not in [
        key for key, *_ in refused({"kind": kind}, labels={"classes": ["x", "y"]})
    ]
