"""A worker rebuilds when something goes wrong, but neither for ever nor in a slot that is another's."""

import pytest

from mistakebound.log.protocol import Fenced
from mistakebound.worker.rebuilds import GaveUp, Rebuilds

ERROR = Fenced("another process took the slot")


def test_rests_grow_and_the_eleventh_rebuild_gives_up() -> None:
    """A broker that restarts does not use them up within a second."""
    rebuilds = Rebuilds(lambda: 0.0)
    rests = [rebuilds.count(ERROR) for _ in range(10)]
    assert rests == [0.1, 0.2, 0.4, 0.8, *[1.0] * 6]
    with pytest.raises(GaveUp, match="rebuilt 11 times within 300 s"):
        rebuilds.count(ERROR)


def test_rebuilds_long_ago_do_not_count() -> None:
    """One an hour is no reason to give up."""
    now = 0.0
    rebuilds = Rebuilds(lambda: now)
    for _ in range(30):
        assert rebuilds.count(ERROR) == 0.1
        now += 3_600


@pytest.mark.parametrize(("seconds", "refused"), [(59.0, True), (61.0, False)])
def test_a_worker_that_is_fenced_twice_within_a_minute_ends(seconds: float, refused: bool) -> None:
    """Two processes that fight for one slot would otherwise go on for ever."""
    now = 0.0
    rebuilds = Rebuilds(lambda: now)
    rebuilds.refuse_fenced_again(ERROR)
    now = seconds
    if refused:
        with pytest.raises(Fenced):
            rebuilds.refuse_fenced_again(ERROR)
    else:
        rebuilds.refuse_fenced_again(ERROR)
