"""Predictions that are missing although `outcomes` count their examples."""

from typing import Any

import pytest

from mistakebound.core.messages.schema import Decision, Inputs, Outcomes, Version, encode
from mistakebound.core.records import Outgoing, Transaction
from mistakebound.worker.missing_predictions import find_gaps
from tests.core.support.memory_log import MemoryLog

VERSION = Version(1, [0])


def log_of(*parts: Outcomes, predicted: tuple[int, ...] = ()) -> Any:
    """A log with these outcomes, and predictions of these examples."""
    log = MemoryLog(1)
    outputs = [Outgoing("outcomes", 0, None, encode(part)) for part in parts]
    outputs += [Outgoing("predictions", 0, None, encode({"source": source})) for source in predicted]
    log.commit(Transaction(outputs), marker=True)
    return log


def last(examples: int, consumed: int, *decisions: Decision, part: int = 0) -> Outcomes:
    """The last part of a partition step that ends before this example."""
    order = [consumed]
    return Outcomes(part, VERSION, list(decisions), order=order, inputs=Inputs(examples, 0))


def invalid(source: int) -> Decision:
    return Decision("invalid", None, source)


@pytest.mark.parametrize(
    ("predicted", "missing"),
    [((0, 1, 3), []), ((0, 3), [(0, 4, 1)]), ((), [(0, 4, 3)]), ((1, 3), [(0, 4, 1)])],
)
def test_an_example_that_was_consumed_and_has_no_prediction_is_missing(
    predicted: tuple[int, ...], missing: list[tuple[int, int, int]]
) -> None:
    """Except one that could not be read: it gets none."""
    found = find_gaps(log_of(last(4, 4, invalid(2)), predicted=predicted), 0)
    assert [(gap.start, gap.stop, gap.missing) for gap in found] == missing


def test_parts_of_a_torn_step_say_nothing_of_the_step_that_was_made_instead() -> None:
    """That one may be shorter: what the parts say of later examples would make up for those that are missing."""
    torn = Outcomes(0, VERSION, [invalid(3), invalid(4)])
    found = find_gaps(log_of(torn, last(2, 2), last(5, 3, invalid(3), invalid(4)), predicted=(2,)), 0)
    assert [(gap.start, gap.stop, gap.missing) for gap in found] == [(0, 2, 2)]


def test_all_parts_of_a_step_count() -> None:
    """Its decisions lie in several records; only the last says where it ends."""
    first = Outcomes(0, VERSION, [invalid(0)])
    assert find_gaps(log_of(first, last(2, 2, part=1), predicted=(1,)), 0) == []


def test_steps_before_the_place_that_is_asked_for_are_left_alone() -> None:
    """They were looked at when they were new."""
    log = log_of(last(2, 2), last(4, 2), predicted=(2,))
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0, since=2)] == [(2, 1)]
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(0, 2), (2, 1)]


def test_predictions_that_retention_deleted_are_not_missing() -> None:
    """They were there; where the topic begins amid a step, nobody can tell what else was."""
    log = log_of(last(2, 2), last(4, 2), last(6, 2), predicted=(3, 4))
    log.lost["predictions", 0] = 0
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(0, 2), (2, 1), (4, 1)]

    log.lost["predictions", 0] = 1  # the record of example 3 is deleted; 4 is the oldest
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(4, 1)]
    log.lost["predictions", 0] = 2
    assert find_gaps(log, 0) == []
