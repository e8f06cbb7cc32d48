"""Features crossed with their tenant: named apart for every two tenants, and from the shared ones."""

import json
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.crossing import crossed, tenant_of
from mistakebound.core.messages.features import reader
from mistakebound.settings import FeatureSettings

awkward = st.text(alphabet="ab|\\", max_size=5)


def of(features: Any, tenant: str = "acme", **rules: Any) -> tuple[tuple[str, float], ...]:
    settings = FeatureSettings(**{"cross": "/tenant", **rules})
    return tuple(reader(settings)(json.dumps(features).encode(), tenant))


@given(st.tuples(awkward, awkward), st.tuples(awkward, awkward))
def test_no_two_pairs_of_tenant_and_name_are_spelled_alike(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Whatever bars and backslashes are in them."""
    (spelled,), (others) = (
        crossed([(one[1], 1.0)], one[0], False),
        crossed([(other[1], 1.0)], other[0], False),
    )
    assert (spelled == others[0]) is (one == other)


@given(awkward, awkward, awkward)
def test_no_shared_name_is_spelled_like_a_tenants(tenant: str, name: str, other: str) -> None:
    """A feature that is named `acme|amount` is not Acme's amount."""
    (own, _), (_, shared) = crossed([(name, 1.0)], tenant, True), crossed([(other, 1.0)], tenant, True)
    assert own[0] != shared[0]


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ({"amount": 2, "colour": "red"}, ("acme|amount", "acme|colour=red", "acme|BIAS")),
        ([0.5, 2], ("acme|0", "acme|1", "acme|BIAS")),
        (["free", "money"], ("acme|free", "acme|money", "acme|BIAS")),
        ({}, ("acme|BIAS",)),
    ],
)
def test_every_form_of_features_crosses_and_so_does_the_bias(features: Any, names: tuple[str, ...]) -> None:
    """Each tenant has a threshold of its own."""
    assert tuple(name for name, _ in of(features)) == names


def test_shared_features_stand_behind_the_tenants() -> None:
    """In the same order, BIAS last."""
    found = of({"b": 3, "a": 2}, cross_shared=True)
    assert found == (
        ("acme|b", 3.0), ("acme|a", 2.0), ("acme|BIAS", 1.0), ("b", 3.0), ("a", 2.0), ("BIAS", 1.0),
    )  # fmt: skip


def test_a_bar_in_a_name_is_escaped_in_both() -> None:
    """So that nothing but the first bare bar ends a tenant."""
    found = of({"a|b": 1}, tenant="x\\y|z", bias=False, cross_shared=True)
    assert found == (("x\\\\y\\|z|a\\|b", 1.0), ("a\\|b", 1.0))


def test_features_are_scaled_before_they_are_crossed() -> None:
    """One scale for all tenants, by the names that examples have."""
    assert of({"a": 5}, bias=False, scale={"a": (1, 2)}) == (("acme|a", 2.0),)


@pytest.mark.parametrize("shared", [False, True])
def test_a_unit_length_is_that_of_what_is_learned(shared: bool) -> None:
    """With the shared features beside them the same values count twice."""
    found = of({"a": 3, "b": 4}, bias=False, normalize="unit", cross_shared=shared)
    assert sqrt(sum(x * x for _, x in found)) == pytest.approx(1.0)
    assert found[0] == ("acme|a", 3 / sqrt(50 if shared else 25))


def test_features_without_a_tenant_are_of_an_epoch_that_crossed_nothing() -> None:
    """What waits from then is counted, and not learned from."""
    with pytest.raises(BadRecord, match="missing-tenant"):
        reader(FeatureSettings(cross="/tenant"))(b'{"a": 1}')


def test_a_tenant_is_ignored_where_nothing_is_crossed() -> None:
    """An example that waits from an epoch that crossed is learned as all others."""
    assert tuple(reader(FeatureSettings(bias=False))(b'{"a": 1}', "acme")) == (("a", 1.0),)


@pytest.mark.parametrize(("found", "tenant"), [("acme", "acme"), (7, "7"), (-7, "-7"), ("é" * 64, "é" * 64)])
def test_a_tenant_is_text_or_an_integer(found: Any, tenant: str) -> None:
    """As ids are: 7 and "7" are one tenant."""
    assert tenant_of(found, "/tenant") == tenant


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "missing-tenant"),
        ("", "missing-tenant"),
        (True, "bad-tenant"),
        (7.5, "bad-tenant"),
        (["acme"], "bad-tenant"),
        ({"name": "acme"}, "bad-tenant"),
        ("é" * 65, "bad-tenant"),
        (10**200, "bad-tenant"),
    ],
)
def test_what_is_no_tenant_is_refused(found: Any, reason: str) -> None:
    """Absent and wrong are told apart."""
    with pytest.raises(BadRecord) as caught:
        tenant_of(found, "/payload/tenant")
    assert caught.value.reason == reason
    assert "at /payload/tenant" in caught.value.detail
