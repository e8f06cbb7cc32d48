"""Reads from the oldest record that is there, while retention deletes records."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from mistakebound.core.records import Record
from mistakebound.log.newest import newest_record, newest_records
from mistakebound.log.oldest import from_oldest
from mistakebound.log.protocol import Log, OffsetLost

HELD = 40


class Shrinking:
    """A partition of 40 records that loses its first ones right after it was asked where it begins, as often as is said."""

    def __init__(self, times: int, by: int = 5) -> None:
        self._left, self._by, self.low = times, by, 0

    def low_watermark(self, *_: Any) -> int:
        told = self.low
        if self._left:
            self._left -= 1
            self.low += self._by
        return told

    def high_watermark(self, *_: Any) -> int:
        return HELD

    def stable_ends(self, asked: Any) -> Any:
        return dict.fromkeys(asked, HELD)

    def read(self, topic: Any, partition: int, start: int, stop: int = HELD) -> Iterator[Record]:
        if start < self.low:
            raise OffsetLost(f"offset {start} is needed, the log holds {self.low} to {HELD}")
        return (Record(topic, partition, n, 0, None, b"") for n in range(start, stop))


READS: dict[str, Callable[[Log], list[int]]] = {
    "all": lambda log: [each.offset for each in from_oldest(log, "outcomes", 0)],
    "the newest that there is not": lambda log: [
        each.offset
        for each in [newest_record(log, "outcomes", 0, lambda record: record.offset < 3)]
        if each is not None
    ],
    "the newest ones": lambda log: [each.offset for each in newest_records(log, "outcomes", 0, HELD)],
}
LEFT = {"all": 5, "the newest that there is not": HELD, "the newest ones": 5}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_deleted_between_question_and_read_is_passed(read: str, times: int) -> None:
    """It is asked again where the partition begins."""
    log = Shrinking(times)

    assert READS[read](cast("Log", log)) == list(range(LEFT[read] * times, HELD))


@pytest.mark.parametrize("read", READS)
def test_a_loss_that_retention_does_not_explain_is_raised(read: str) -> None:
    """The partition begins where it began, and the read fails all the same."""
    log = Shrinking(0)
    log.read = lambda *_: (_ for _ in ()).throw(OffsetLost("lost"))  # type: ignore[method-assign]

    with pytest.raises(OffsetLost):
        READS[read](cast("Log", log))
