"""Counts by tenant: exact lines for a partition's first tenants, and over partitions the largest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.schema import encode
from mistakebound.core.messages.tallies import TENANT_LINES, TENANT_NAMES_BYTES, Tallies, TenantTally, zero
from mistakebound.core.messages.tenants import SHOWN, by_tenant
from mistakebound.core.step.sizes import TENANTS_BYTES


def tallies(*tenants: str) -> Tallies:
    """After one prediction for each, in this order."""
    found = Tallies(zero(), zero())
    for tenant in tenants:
        found.of_tenant(tenant).predicted += 1
    return found


def test_a_partitions_first_tenants_have_lines_of_their_own() -> None:
    """Those that come later are counted together, and never get a line."""
    names = [str(n) for n in range(TENANT_LINES + 2)]
    found = tallies(*names, *names[-1:])
    assert list(found.tenants) == names[:TENANT_LINES]
    assert found.other_tenants == TenantTally(predicted=3)


def test_long_names_take_the_room_of_several() -> None:
    """All lines are written with every step: their names are limited together."""
    names = [f"{n:03}" + "x" * 120 for n in range(TENANT_LINES)]
    found = tallies(*names)
    assert 1 < len(found.tenants) < TENANT_LINES
    assert sum(len(encode(name)) + 1 for name in found.tenants) <= TENANT_NAMES_BYTES
    assert found.other_tenants == TenantTally(predicted=TENANT_LINES - len(found.tenants))


@given(st.lists(st.text(min_size=1, max_size=128), max_size=200), st.integers(1, 10**13 - 1))
def test_lines_take_no_more_bytes_than_sizes_reckon_with(names: list[str], count: int) -> None:
    """However they are called and however much is counted."""
    found = tallies(*names)
    for line in (*found.tenants.values(), found.other_tenants):
        if line is not None:
            line.predicted = line.labelled = line.mistakes = line.updates = count
    assert len(encode(found)) - len(encode(Tallies(zero(), zero()))) <= TENANTS_BYTES


def test_nothing_is_written_where_there_are_no_tenants() -> None:
    """As earlier versions wrote it."""
    assert b"tenant" not in encode(Tallies(zero(), zero()))


def test_the_largest_are_shown_over_all_partitions() -> None:
    """By examples predicted, equal ones by name; all others are added up."""
    names = [f"t{n:02}" for n in range(SHOWN + 2)]
    one, other = tallies(*names), tallies(names[-1], names[-1], names[-2])
    found = by_tenant([one, other])
    assert [each.tenant for each in found] == [names[-1], names[-2], *names[: SHOWN - 2], None]
    assert [each.examples for each in found] == [3, 2, *[1] * (SHOWN - 2), 2]
    assert all(each.complete for each in found)


def test_a_tenant_that_came_late_to_a_partition_is_told_to_be_counted_in_part() -> None:
    """Its counts there are among the others', and cannot be told apart."""
    early, late = tallies("big", "big"), tallies(*(str(n) for n in range(TENANT_LINES)), "big")
    found = {each.tenant: each.complete for each in by_tenant([early, late])}
    assert found["big"] is False
    assert found["0"] is True
    assert found[None] is False


def test_a_rate_is_of_what_is_labelled() -> None:
    """None where nothing is."""
    found = tallies("acme", "new")
    found.of_tenant("acme").labelled, found.of_tenant("acme").mistakes = 4, 1
    rates: dict[Any, Any] = {each.tenant: each.mistake_rate for each in by_tenant([found])}
    assert rates == {"acme": 0.25, "new": None}
