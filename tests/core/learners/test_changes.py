"""Proved changes: never more than there were, the first possible update, and a fold like any other."""

from math import fsum, sqrt
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.learners.changes import FRESH, KEPT, ROUNDING, Change, Changes
from mistakebound.core.linear.theta import euclidean
from mistakebound.core.messages.features import Features
from tests.support.tries import tried

Example = tuple[Features, float]


def norm(theta: object) -> float:
    return sqrt(fsum(value * value for value in theta.values()))  # type: ignore[attr-defined]


def made(gamma: float, partitions: int = 1) -> Changes:
    return Changes(partitions, gamma, norm)


def taken(changes: Changes, examples: list[Example], partition: int = 0, after: int = 0) -> list[int]:
    """The numbers of the updates that prove a change."""
    return [
        n
        for n, (x, sign) in enumerate(examples, start=after + 1)
        if changes.add(partition, n, sign, x, euclidean(x))
    ]


def part(random: Random, count: int, gamma: float, dimensions: int = 3) -> list[Example]:
    """Examples that a unit separator of its own has with at least this margin, in any order."""
    u = [random.gauss(0, 1) for _ in range(dimensions)]
    length = sqrt(fsum(value * value for value in u))
    u = [value / length for value in u]
    found: list[Example] = []
    while len(found) < count:
        x = [random.uniform(-1, 1) for _ in range(dimensions)]
        margin = fsum(a * b for a, b in zip(u, x, strict=True))
        if abs(margin) >= gamma * ROUNDING:
            found.append((tuple(zip("abc", x, strict=False)), 1.0 if margin > 0 else -1.0))
    return found


@tried(200)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 120), min_size=1, max_size=6), st.floats(0.01, 0.5))
def test_never_more_changes_are_proved_than_there_were(seed: int, sizes: list[int], gamma: float) -> None:
    """K + 1 parts, each separable by the declared margin and some of them empty: at most K. None where K = 0."""
    random, changes = Random(seed), made(gamma)
    proved = taken(changes, [one for size in sizes for one in part(random, size, gamma)])

    assert len(proved) <= len(sizes) - 1
    assert changes.stretches[0].proved == len(proved)


@pytest.mark.parametrize("seed", range(5))
def test_a_reversal_is_proved_once_and_soon(seed: int) -> None:
    """After as many examples of the other sign, theta is back at its start."""
    random = Random(seed)
    before = part(random, 200, 0.3)
    after = [(x, -sign) for x, sign in part(Random(seed), 200, 0.3)]
    proved = taken(made(0.3), [*before, *after])

    assert len(proved) == 1
    assert 200 < proved[0] <= 400


def by_hand(examples: list[Example], gamma: float) -> list[tuple[int, int]]:
    """Every stretch added up anew, and looked at after each of its updates."""
    found: list[tuple[int, int]] = []
    first, sums = 1, dict[str, float]()
    for n, (x, sign) in enumerate(examples, start=1):
        for name, value in x:
            sums[name] = sums.get(name, 0.0) + sign * value
        if norm(sums) * ROUNDING < gamma * (n + 1 - first):
            found.append((first, n))
            first, sums = n + 1, {}
    return found


noise = st.lists(
    st.tuples(
        st.lists(st.floats(-1, 1), min_size=2, max_size=2).map(lambda x: tuple(zip("ab", x, strict=True))),
        st.sampled_from([-1.0, 1.0]),
    ),
    max_size=60,
)


@given(noise, st.floats(0.01, 1.0))
def test_a_change_is_proved_by_the_first_update_that_can(examples: list[Example], gamma: float) -> None:
    """Not looking while nothing can be found loses nothing."""
    changes = made(gamma)
    taken(changes, examples)
    expected = by_hand(examples, gamma)

    assert changes.stretches[0].proved == len(expected)
    assert [tuple(each) for each in changes.stretches[0].newest] == expected[-KEPT:]


@given(noise, st.floats(0.01, 1.0), st.integers(0, 60), st.integers(0, 60))
def test_a_rollback_restores_it_to_the_bit(
    examples: list[Example], gamma: float, first: int, second: int
) -> None:
    """Two steps back, across the closing of stretches."""
    changes = made(gamma)
    begun, _, last = examples[:first], examples[first : first + second], examples[first + second :]
    changes.begin()
    taken(changes, begun)
    states = [msgspec.msgpack.encode(changes.dump())]
    changes.begin()
    taken(changes, examples[first : first + second], after=first)
    states.append(msgspec.msgpack.encode(changes.dump()))
    changes.begin()
    taken(changes, last, after=first + second)

    changes.rollback()
    assert msgspec.msgpack.encode(changes.dump()) == states[1]
    changes.rollback()
    assert msgspec.msgpack.encode(changes.dump()) == states[0]


@given(noise, st.floats(0.01, 1.0), st.integers(0, 60))
def test_a_checkpoint_goes_on_as_if_it_had_never_been_left(
    examples: list[Example], gamma: float, first: int
) -> None:
    """To the bit."""
    whole, restored, half = made(gamma), made(gamma), made(gamma)
    taken(whole, examples)
    taken(half, examples[:first])
    restored.load(msgspec.msgpack.decode(msgspec.msgpack.encode(half.dump())))
    taken(restored, examples[first:], after=len(examples[:first]))

    assert msgspec.msgpack.encode(restored.dump()) == msgspec.msgpack.encode(whole.dump())


@given(noise, noise, st.randoms(use_true_random=False))
def test_partitions_do_not_know_of_each_other(one: list[Example], two: list[Example], random: Random) -> None:
    """In whatever order their updates are folded."""
    mixed, apart = made(0.3, 2), made(0.3, 2)
    taken(apart, one, 0)
    taken(apart, two, 1)
    left = [list(reversed(one)), list(reversed(two))]
    numbers = [0, 0]
    while any(left):
        p = random.choice([p for p in (0, 1) if left[p]])
        x, sign = left[p].pop()
        numbers[p] += 1
        mixed.add(p, numbers[p], sign, x, euclidean(x))

    assert mixed.dump() == apart.dump()


def test_each_change_is_told_with_its_stretch() -> None:
    """Three of one class, two of the other: the sum of 1 in 5 is below 0.3 of 5. Then it begins anew."""
    changes = made(0.3)
    one: Example = ((("a", 1.0),), 1.0)
    other: Example = ((("a", 1.0),), -1.0)
    proved = taken(changes, [one, one, one, other, other, other, other])

    assert proved == [5]
    assert changes.stretches[0].newest == (Change(1, 5),)
    assert (changes.stretches[0].first, changes.stretches[0].updates) == (6, 2)


def test_an_example_shorter_than_the_margin_refutes_it_alone() -> None:
    """The declaration is false, so no number of changes means anything: each update is counted."""
    changes = made(0.5)
    assert taken(changes, [((("a", 0.1),), 1.0)] * 3) == [1, 2, 3]


def test_only_the_newest_changes_are_kept_by_number() -> None:
    """All are counted."""
    changes = made(0.5)
    taken(changes, [((("a", 0.1),), 1.0)] * 25)

    assert changes.stretches[0].proved == 25
    assert [each.n for each in changes.stretches[0].newest] == list(range(16, 26))


@pytest.mark.parametrize("state", [[], [FRESH], [(0, [], 0, 0)], [(0, [], 0, 0, 0.0, None)], None])
def test_what_is_no_state_is_refused(state: object) -> None:
    """A damaged checkpoint."""
    with pytest.raises((ValueError, TypeError, AttributeError, IndexError)):
        made(0.5).load(state)  # type: ignore[arg-type]
