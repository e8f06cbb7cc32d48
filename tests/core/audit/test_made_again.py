"""Predictions that were made again behind those of later examples: what `--predict-missing` writes is right as it lies
there, and nothing else is."""

from copy import deepcopy

import pytest
from structlog.testing import capture_logs

from mistakebound.core.records import Record
from tests.core.support.audited import Lists
from tests.worker.support.torn import SIZE, Torn, lists_of, of
from tests.worker.support.working import Run, example, label, opened, settings_for

GONE = range(SIZE, 2 * SIZE)
"""Examples of the second step, whose predictions were made again behind all others: as the last records but one."""
LAST = 4 * SIZE
"""The example that came after that."""


@pytest.fixture(scope="module")
def mended() -> Lists:
    """Learned from some labels between: the model of what was made again is another."""
    settings = settings_for(batch={"max_records": SIZE})
    with capture_logs(), opened(settings) as log:
        log.append([example(number, {"a": number}, 1_000 + number) for number in range(2 * SIZE)])
        log.append([label(number, True, 1_500 + number) for number in range(SIZE)])
        log.append([example(number, {"a": number}, 2_000 + number) for number in range(2 * SIZE, LAST)])
        keep = of("outcomes", "updates")
        Run(Torn(log, 1, keep, positions=True, lying=True, once=True), settings)
        Run(log, settings, predict_missing=True)
        log.append([example(LAST, {"a": 1}, 3_000)])
        Run(log, settings)
        return lists_of(log)


@pytest.fixture
def log(mended: Lists) -> Lists:
    return deepcopy(mended)


def sources(log: Lists) -> list[int]:
    return [value["source"] for value in log.values("predictions", 0)]


def test_a_gap_that_was_filled_behind_later_predictions_is_right(log: Lists) -> None:
    """Each is made again by the version that it carries."""
    assert sources(log) == [*range(SIZE), *range(2 * SIZE, LAST), *GONE, LAST]

    found = log.audit()

    assert found.first == []
    assert found.checked["predictions"] == LAST + 1 + len(GONE), "each, and these once more by their versions"


def move(records: list[Record], start: int, to: int) -> None:
    """One record to another place; offsets stay in order."""
    offsets = [record.offset for record in records]
    records.insert(to, records.pop(start))
    records[:] = [record._replace(offset=at) for record, at in zip(records, offsets, strict=True)]


FIRST = LAST - SIZE
"""Place of the first that was made again."""
REORDERED = {
    "two of those that were made at once": (3, 4),
    "two after the gap": (SIZE + 3, SIZE + 4),
    "two that were made again": (FIRST + 3, FIRST + 4),
    "one that was made again before older ones": (FIRST, SIZE + 5),
    "one that was made again behind a newer one": (FIRST + SIZE - 1, FIRST + SIZE),
}


@pytest.mark.parametrize("what", REORDERED)
def test_records_out_of_their_order_are_found(log: Lists, what: str) -> None:
    """Also among those with the mark, and between these and others."""
    move(log.records["predictions", 0], *REORDERED[what])

    assert {each.check for each in log.audit().first} == {"predictions"}


def test_one_without_the_mark_is_out_of_its_order(log: Lists) -> None:
    """The worker never writes it there."""
    log.rewrite("predictions", 0, FIRST + 2, lambda value: value.pop("again"))

    texts = [each.text for each in log.audit().first]

    gone = GONE[2]
    assert f"no prediction of 'i{gone}', examples-0 offset {gone}" in texts
    assert (
        f"a prediction of 'i{gone}', examples-0 offset {gone}, that is there already or was not due" in texts
    )


@pytest.mark.parametrize("place", [5, FIRST + 2])
def test_one_that_is_there_already_was_not_due_again(log: Lists, place: int) -> None:
    """The mark does not excuse it."""
    records = log.records["predictions", 0]
    records.append(records[place]._replace(offset=records[-1].offset + 1))
    log.rewrite("predictions", 0, len(records) - 1, lambda value: value.update(again=True))

    assert log.audit().differences == 1
