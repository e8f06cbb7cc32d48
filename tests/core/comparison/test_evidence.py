"""The bet against "equally good": its value, that it is fair, and how seldom fair streams win it."""

from fractions import Fraction
from math import factorial, isclose
from random import Random
from sys import float_info

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.comparison.evidence import ENOUGH, Bet, as_number, as_text, evidence

counts = st.integers(0, 60)


@given(counts, counts)
def test_it_is_the_fraction_of_factorials(b: int, c: int) -> None:
    """2^n b! c!/(n + 1)!."""
    n = b + c
    assert evidence(b, c) == Fraction(2**n * factorial(b) * factorial(c), factorial(n + 1))


@given(counts, counts)
def test_what_it_is_next_is_on_average_what_it_is_now(b: int, c: int) -> None:
    """A fair game: nobody can expect to gain."""
    assert (evidence(b + 1, c) + evidence(b, c + 1)) / 2 == evidence(b, c)


@given(counts, counts)
def test_which_side_is_called_the_first_makes_no_difference(b: int, c: int) -> None:
    """Both are bet on alike."""
    assert evidence(b, c) == evidence(c, b)


@given(st.integers(0, 400), st.integers(0, 400))
def test_its_text_is_exact_and_short(b: int, c: int) -> None:
    """Digits where they are few, else factorials."""
    text = as_text(b, c)

    assert len(text) <= 81
    if "!" in text:
        assert text == f"2^{b + c} * {b}! * {c}! / {b + c + 1}!"
    else:
        assert Fraction(text) == evidence(b, c)


@given(counts, counts)
def test_its_decimal_is_the_fraction_rounded_once(b: int, c: int) -> None:
    """By integers."""
    assert as_number(b, c) == float(evidence(b, c))


def test_a_decimal_that_no_float_holds_is_the_largest_float() -> None:
    """JSON has no infinity."""
    assert as_number(5_000, 0) == float_info.max


@given(st.lists(st.booleans(), max_size=300))
def test_a_bet_is_won_at_the_first_moment_at_which_the_fraction_is_enough(stream: list[bool]) -> None:
    """Although its running value is a float."""
    bet, first, second = Bet(), 0, 0
    expected = None
    for one in stream:
        bet.take(first=one)
        first, second = first + one, second + (not one)
        if expected is None and evidence(first, second) >= ENOUGH:
            expected = first, second
    assert bet.reached == expected
    assert (bet.first, bet.second) == (first, second)


def test_the_running_value_stays_that_of_the_fraction_for_long() -> None:
    """100,000 ids on which two equally good ones differ: rounding does not add up to anything."""
    bet = Bet()
    for number in range(100_000):
        bet.take(first=number % 2 == 0)
    assert isclose(bet._value, as_number(50_000, 50_000), rel_tol=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_of_10_000_fair_streams_at_most_one_in_twenty_ever_wins(seed: int) -> None:
    """Looked at after each of 500 ids: however often one looks, whenever one stops."""
    random, streams, won = Random(seed), 10_000, 0
    for _ in range(streams):
        bet = Bet()
        coins = random.getrandbits(500)
        for place in range(500):
            bet.take(first=bool(coins >> place & 1))
            if bet.reached is not None:
                won += 1
                break
    assert 0 < won <= streams / 20


def test_a_better_one_wins() -> None:
    """Right three times as often as the other where they differ."""
    random, bet = Random(3), Bet()
    for _ in range(200):
        bet.take(first=random.random() < 0.75)
    assert bet.reached is not None
    assert bet.reached.first > bet.reached.second
