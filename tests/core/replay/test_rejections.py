"""What a replay could not use: counted by reason, with the place of the first, in a recording or a file."""

from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from mistakebound.core.records import Record
from mistakebound.core.replay.passes import replay_passes
from mistakebound.core.replay.rejections import DUPLICATE_ID, Rejections
from mistakebound.core.replay.replay import Row, as_stream, replay_records
from mistakebound.core.reporting.report import Place, Rejected
from mistakebound.settings import Settings

GOOD = {"x": 1.0}


def numbered(rows: Iterable[Row], first: int = 2) -> list[Row]:
    """Rows on consecutive lines, as those of a file with a header are."""
    return [row._replace(line=line) for row, line in zip(rows, count(first))]


def rejected(rows: list[Row], partitions: int = 1, delay: int = 0, **more: Any) -> tuple[Rejected, ...]:
    return replay_passes(rows, Settings(), partitions, delay, **more).rejected


def brief(found: Iterable[Rejected]) -> list[tuple[str, str, int, int | None]]:
    return [(one.stream, one.reason, one.count, one.first.line) for one in found]


def mixed() -> list[Row]:
    """Of 40 rows every fourth has a label that nobody declared, and rows 7 and 20 have no usable features."""
    rows = [Row(str(n), GOOD, "maybe" if n % 4 == 3 else n % 2 == 0) for n in range(40)]
    rows[7] = rows[7]._replace(features=3)
    rows[20] = rows[20]._replace(features={"x": None})
    return numbered(rows)


@pytest.mark.parametrize("partitions", [1, 3, 8])
@pytest.mark.parametrize("delay", [0, 5, 100])
def test_rows_are_counted_by_reason_with_the_line_of_the_first(partitions: int, delay: int) -> None:
    """Whatever partition they were dealt to, and however late their labels."""
    assert brief(rejected(mixed(), partitions, delay)) == [
        ("examples", "bad-features", 1, 9),
        ("examples", "missing-feature", 1, 22),
        ("labels", "unknown-label", 10, 5),
    ]


def test_the_detail_names_value_and_remedy() -> None:
    """Of the first."""
    *_, last = rejected(mixed())
    assert last.detail == 'label is "maybe"; known: true, false; see [labels]'


def test_of_several_passes_the_first_is_told() -> None:
    """The rows are the same in each."""
    assert brief(rejected(mixed(), most=3)) == brief(rejected(mixed()))


def test_a_shuffled_row_keeps_its_line() -> None:
    """The one bad row of many is found on its own line, wherever the order put it."""
    rows = numbered(Row(str(n), GOOD, "maybe" if n == 17 else True) for n in range(30))
    for seed in range(3):
        assert brief(rejected(rows, 4, 2, most=2, seed=seed)) == [("labels", "unknown-label", 1, 19)]


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_row_whose_id_came_before_is_rejected(partitions: int) -> None:
    """The stream takes a second example of an id for a retry; of a file it would be a row lost without a word."""
    rows = numbered(Row(str(n % 4), GOOD, True) for n in range(7))
    (found,) = rejected(rows, partitions)
    assert brief([found]) == [("examples", DUPLICATE_ID, 3, 6)]
    assert found.detail == "the id '0' came before; give each row an id of its own, or none"


def test_rows_without_a_line_are_counted_without_a_place() -> None:
    """A place in the stream that they were made into would mean nothing to anybody."""
    ((_, reason, many, line),) = brief(rejected([Row("a", GOOD, 5), Row("b", GOOD, 5)]))
    assert (reason, many, line) == ("unknown-label", 2, None)


def test_a_good_file_has_nothing_rejected() -> None:
    """An empty tuple."""
    assert rejected(numbered([Row("a", GOOD, True)])) == ()


# --- recordings -----------------------------------------------------------------------------------------


def of_recording(records: Iterable[Record], partitions: int = 2) -> tuple[Rejected, ...]:
    rejections = Rejections()
    replay_records(records, Settings(), partitions, taken=rejections.see)
    return rejections.found()


def test_records_are_told_by_partition_and_offset() -> None:
    """As `tail` and the dead letter of the live stream name them."""
    stream = [
        record._replace(value=b"?") if (record.topic, record.offset) == ("labels", 4) else record
        for record in as_stream(mixed(), Settings(), 2, 0)
    ]
    places = {(one.stream, one.reason): (one.count, one.first) for one in of_recording(stream)}
    assert places == {
        ("examples", "bad-features"): (1, Place(partition=1, offset=3)),
        ("examples", "missing-feature"): (1, Place(partition=0, offset=10)),
        ("labels", "unknown-label"): (10, Place(partition=1, offset=1)),
        ("labels", "not-json"): (2, Place(partition=0, offset=4)),
    }


def test_a_retry_in_a_recording_is_no_fault() -> None:
    """Producers repeat themselves; that is what ids are for."""
    rows = [Row("same", GOOD, True), Row("same", GOOD, True)]
    assert of_recording(as_stream(rows, Settings(), 1, 0), 1) == ()


def test_headers_of_the_sender_do_not_pass_for_the_reason() -> None:
    """Whatever a producer calls its headers."""
    forged = (("mistakebound.reason", b"none"), ("mistakebound.offset", b"x"))
    record = Record("examples", 0, 3, 1, b"a", b"?", forged)
    assert [(one.reason, one.first.offset) for one in of_recording([record], 1)] == [("not-json", 3)]


def test_a_long_detail_that_was_cut_within_a_letter_is_still_told() -> None:
    """The dead letter keeps 500 bytes of it, and classes may be named in any letters."""
    settings = Settings.model_validate({"labels": {"classes": ["é" * 60, "ü" * 60, "ö" * 60]}})
    for label in ("é" * 30, "a" + "é" * 30):
        rejections = Rejections()
        record = Record("labels", 0, 0, 1, b"a", b'{"id":"a","label":"%s"}' % label.encode())
        replay_records([record], settings, 1, taken=rejections.see)
        ((reason, detail),) = [(one.reason, one.detail) for one in rejections.found()]
        assert reason == "unknown-label"
        assert detail.startswith(f'label is "{label}"; known: "ééé')
