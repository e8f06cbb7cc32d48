"""What counts as growth of a process that is watched for a quarter of an hour."""

import pytest

from tests.faults.support.footprint import slope

HOURS = [minutes / 60 for minutes in range(15)]


def test_what_grows_steadily_is_told_in_full() -> None:
    assert slope([(hour, 80_000 + 2_000 * hour) for hour in HOURS]) == pytest.approx(2_000)


@pytest.mark.parametrize("at", [*range(5), *range(11, 15)])
def test_one_step_of_a_heap_is_no_growth_unless_it_comes_amid_the_time(at: int) -> None:
    assert slope([(hour, 80_000 + 300 * (number >= at)) for number, hour in enumerate(HOURS)]) == 0


def test_steps_that_go_on_are_growth() -> None:
    assert slope([(hour, 80_000 + 300 * (hour * 60 // 3)) for hour in HOURS]) > 5_000


def test_what_comes_and_goes_is_not_growth() -> None:
    assert slope([(hour, 80_000 + 500 * (number % 3 == 1)) for number, hour in enumerate(HOURS)]) == 0
