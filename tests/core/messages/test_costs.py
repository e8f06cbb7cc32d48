"""What mistakes cost: exact sums of decimal numbers, and what cannot be a cost."""

from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.costs import costs_of
from mistakebound.settings import LabelSettings

FRAUD = LabelSettings(costs={"false_positive": 0.1, "false_negative": 25})
ZOO = LabelSettings(classes=("ape", "bee", "cat"), costs={"ape": {"bee": 2.5}, "cat": {"ape": 7}})


def test_a_sum_is_that_of_the_decimals_as_they_are_written() -> None:
    """Three times 0.1 is 0.3, which float additions miss."""
    costs = costs_of(FRAUD)
    assert costs is not None
    assert costs.total([("false", "true", 3)]) == 0.3 != 0.1 + 0.1 + 0.1
    assert costs.total([("false", "true", 3), ("true", "false", 2), ("true", "true", 9)]) == 50.3
    assert (costs.least, costs.most) == (0.1, 25)


@given(
    st.lists(st.tuples(*2 * (st.sampled_from(["ape", "bee", "cat"]),), st.integers(0, 10**9)), max_size=20)
)
def test_a_sum_is_rounded_once_in_any_order(pairs: list[tuple[str, str, int]]) -> None:
    """As the decimal module has it."""
    costs = costs_of(ZOO)
    assert costs is not None
    exact = sum(
        (count * Decimal(repr(costs.of(actual, said))) for actual, said, count in pairs if actual != said),
        Decimal(0),
    )
    assert costs.total(pairs) == float(exact)
    Random(1).shuffle(pairs)
    assert costs.total(pairs) == float(exact)


def test_what_is_not_said_costs_1() -> None:
    """So that a cost is a number of ordinary mistakes."""
    costs = costs_of(ZOO)
    assert costs is not None
    assert [costs.of("ape", "bee"), costs.of("bee", "ape"), costs.of("cat", None)] == [2.5, 1, 1]
    assert (costs.least, costs.most) == (1, 7)


def test_of_two_classes_the_first_is_positive() -> None:
    """However they are declared."""
    costs = costs_of(LabelSettings(classes=("left", "stayed"), costs={"false_negative": 5}))
    assert costs is not None
    assert (costs.of("left", "stayed"), costs.of("stayed", "left")) == (5, 1)


def test_without_costs_there_are_none() -> None:
    """Mistakes are counted all the same."""
    assert costs_of(LabelSettings()) is None


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        ({"costs": {"false_positiv": 1}}, "false_positiv: of two classes"),
        ({"costs": {"false_positive": {"a": 1}}}, "false_positive: of two classes"),
        ({"classes": ("a", "b", "c"), "costs": {"a": 1}}, "a: give each true class a table"),
        ({"classes": ("a", "b", "c"), "costs": {"d": {"a": 1}}}, "d: is none of the classes a, b, c"),
        ({"classes": ("a", "b", "c"), "costs": {"d": 1}}, "d: is none of the classes a, b, c"),
        ({"classes": ("a", "b", "c"), "costs": {"a": {"a": 1}}}, "a.a: must be another one"),
        ({"classes": "open", "costs": {}}, "needs two to 20 declared classes"),
        ({"classes": tuple(map(str, range(21))), "costs": {}}, "needs two to 20 declared classes"),
    ],
)
def test_what_is_wrong_is_named(labels: dict[str, Any], wrong: str) -> None:
    """The key, and what it must be."""
    with pytest.raises(ValueError, match=wrong):
        costs_of(LabelSettings(**labels))
