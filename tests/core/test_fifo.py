"""First-in first-out by id, whatever leaves in between: the order of an OrderedDict, for fewer bytes."""

from collections import OrderedDict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core import fifo
from service.core.fifo import Fifo

IDS = st.sampled_from("abcdefgh")


@pytest.fixture(autouse=True, params=[0, 2, 1_000])
def _few(request: pytest.FixtureRequest) -> Iterator[None]:
    """How soon it looks through all that it holds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fifo, "FEW", request.param)
        yield


@given(st.lists(st.tuples(st.sampled_from(["put", "pop", "pop the oldest", "oldest", "hold"]), IDS)))
def test_it_is_in_the_order_of_an_ordered_dict(changes: list[tuple[str, str]]) -> None:
    held: Fifo[int] = Fifo()
    peer: OrderedDict[str, int] = OrderedDict()
    for number, (change, identity) in enumerate(changes):
        match change:
            case "put":
                held.put(identity, number)
                peer[identity] = number
            case "pop" if identity in peer:
                assert held.pop(identity) == peer.pop(identity)
            case "pop the oldest" if peer:
                first = next(iter(peer))
                assert held.pop(first) == peer.pop(first)
            case "oldest":
                assert held.oldest() == next(iter(peer.values()), None)
            case "hold":
                peer = OrderedDict(sorted(peer.items()))
                held.hold(peer.items())
        assert list(held.entries.items()) == list(peer.items())
    while peer:
        first = next(iter(peer))
        assert held.oldest() == peer[first]
        assert held.pop(first) == peer.pop(first)
    assert held.oldest() is None


def test_an_id_that_came_again_is_as_new_as_it_is() -> None:
    held: Fifo[int] = Fifo()
    for number, identity in enumerate("abc"):
        held.put(identity, number)
    held.pop("b")
    held.put("b", 3)

    order = []
    while (oldest := held.oldest()) is not None:
        order.append(oldest)
        held.pop("acb"[len(order) - 1])

    assert order == [0, 2, 3]


def test_what_is_not_there_cannot_leave() -> None:
    held: Fifo[int] = Fifo()
    held.put("a", 1)

    with pytest.raises(KeyError):
        held.pop("b")

    assert held.oldest() == 1


def test_ids_that_have_left_are_kept_in_small_number() -> None:
    """Under one that never leaves, everything else would stay in the order for ever."""
    held: Fifo[int] = Fifo()
    held.put("stays", -1)

    for number in range(10_000):
        held.put(str(number), number)
        held.pop(str(number))

    assert held.oldest() == -1
    assert len(held._order) <= fifo.FEW + 3
