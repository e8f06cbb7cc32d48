"""How large a step may be after one has failed."""

from mistakebound.core.step.facts import StepFacts
from mistakebound.worker.step_limit import StepLimit


def test_a_step_is_half_as_large_as_one_that_failed_until_sixteen_went_well() -> None:
    """And twice as large after each sixteen, up to what the settings say."""
    limit = StepLimit(1_000)
    limit.failed(StepFacts(consumed={"examples": 60, "labels": 40}))
    sizes = [limit.records]
    for _ in range(16 * 6):
        limit.committed()
        sizes.append(limit.records)
    assert [sizes[at] for at in (0, 15, 16, 32, 48, 64, 80, 96)] == [50, 50, 100, 200, 400, 800, 1_000, 1_000]


def test_a_failure_starts_the_count_of_good_steps_anew() -> None:
    """Else a network that is just too slow would fail every other step."""
    limit = StepLimit(100)
    limit.failed(StepFacts(consumed={"examples": 100}))
    for _ in range(15):
        limit.committed()
    limit.failed(StepFacts(consumed={"examples": 50}))
    limit.committed()
    assert limit.records == 25


def test_examples_that_were_given_up_count_and_a_step_has_one_record_at_least() -> None:
    """A step may consist of expiries alone."""
    limit = StepLimit(100)
    limit.failed(StepFacts(consumed={"examples": 2}, examples={"expired": 70, "evicted": 8}))
    assert limit.records == 40
    for _ in range(9):
        limit.failed(StepFacts())
    assert limit.records == 1
