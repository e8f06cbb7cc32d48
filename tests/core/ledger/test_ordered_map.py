"""First-in first-out by id, whatever leaves in between: the order of an OrderedDict, for fewer bytes."""

from collections import OrderedDict
from collections.abc import Iterator
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.ledger import ordered_map
from mistakebound.core.ledger.entries import Remembered
from mistakebound.core.ledger.ordered_map import OrderedMap

IDS = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "pop", "pop the oldest", "oldest", "hold"]), IDS))


@pytest.fixture(autouse=True, params=[0, 2, 1_000])
def _few(request: pytest.FixtureRequest) -> Iterator[None]:
    """How soon it looks through all that it holds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ordered_map, "FEW", request.param)
        yield


def made() -> OrderedMap[Remembered]:
    return OrderedMap(attrgetter("order"))


def entry(record_id: str, number: int) -> Remembered:
    return Remembered(record_id, None, 0, number)


def emptied(held: OrderedMap[Remembered]) -> list[Remembered]:
    """All its entries, oldest first."""
    found = []
    while (oldest := held.oldest()) is not None:
        found.append(held.pop(oldest.id))
    return found


class Both:
    """An OrderedMap, and what it must equal. An id that is there is not put again: no ledger does."""

    def __init__(self) -> None:
        self.held, self.peer, self.number = made(), OrderedDict[str, Remembered](), 0

    def change(self, how: str, record_id: str) -> None:
        self.number += 1
        match how:
            case "put" if record_id not in self.peer:
                self.held.put(entry(record_id, self.number))
                self.peer[record_id] = entry(record_id, self.number)
            case "pop" if record_id in self.peer:
                assert self.held.pop(record_id) == self.peer.pop(record_id)
            case "pop the oldest" if self.peer:
                first = next(iter(self.peer))
                assert self.held.pop(first) == self.peer.pop(first)
            case "oldest":
                assert self.held.oldest() == next(iter(self.peer.values()), None)
        assert list(self.held.entries.items()) == list(self.peer.items())


@given(CHANGES)
def test_it_is_in_the_order_of_an_ordered_dict(changes: list[tuple[str, str]]) -> None:
    both = Both()
    for change, record_id in changes:
        if change == "hold":
            both.held.hold(list(both.peer.values()))
        both.change(change, record_id)
    assert emptied(both.held) == list(both.peer.values())


@given(CHANGES, CHANGES, CHANGES, st.sampled_from([1, 2]))
def test_the_last_two_steps_can_be_taken_back(
    first: list[tuple[str, str]], second: list[tuple[str, str]], third: list[tuple[str, str]], steps: int
) -> None:
    both, befores = Both(), []
    for changes in (first, second, third):
        both.held.begin()
        befores.append(list(both.peer.values()))
        for change, record_id in changes:
            both.change(change, record_id)
    for _ in range(steps):
        both.held.rollback()
    assert list(both.held.entries.values()) == befores[-steps]
    assert emptied(both.held) == befores[-steps]


def test_an_id_that_came_again_is_as_new_as_it_is() -> None:
    held = made()
    for number, record_id in enumerate("abc"):
        held.put(entry(record_id, number))
    held.pop("b")
    held.put(entry("b", 3))

    assert [each.id for each in emptied(held)] == ["a", "c", "b"]


def test_what_is_not_there_cannot_leave() -> None:
    held = made()
    held.put(entry("a", 1))

    with pytest.raises(KeyError):
        held.pop("b")

    assert [each.id for each in emptied(held)] == ["a"]


def test_ids_that_have_left_are_kept_in_small_number() -> None:
    """Under one that never leaves, everything else would stay in the order for ever."""
    held = made()
    held.put(entry("stays", -1))

    for number in range(10_000):
        held.begin()
        held.put(entry(str(number), number))
        held.pop(str(number))

    assert [each.id for each in held.entries.values()] == ["stays"]
    assert len(held._order) <= ordered_map.FEW + 3
