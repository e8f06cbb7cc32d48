"""A partition step's decisions as records of `outcomes`, however few bytes the topic takes."""

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.dead_letters import record_bytes
from mistakebound.core.messages.schema import Decision, Outcomes, RecoveryPoint, Version, read_outcomes
from mistakebound.core.records import Record
from mistakebound.core.step.outcome_records import write_outcomes
from mistakebound.settings import LabelSettings

DECISIONS = [Decision("applied", "i" * (n % 7 + 1), n, n, True, False) for n in range(40)]


def written(decisions: list[Decision], largest: int) -> list[bytes]:
    """The records' values."""
    point, ledger = RecoveryPoint(0, 0, 0), Ledger(LabelSettings())
    records = write_outcomes(0, Version(1, [0]), decisions, [40, 40], ledger, point, largest)
    return [record.value or b"" for record in records]


def read(value: bytes) -> Outcomes:
    return read_outcomes(Record("outcomes", 0, 0, 0, None, value))


def size(value: bytes) -> int:
    return record_bytes(None, value, ())


def test_every_record_fits_whatever_the_topic_takes() -> None:
    """From the least that takes the summary up to one record for all: no decision is lost, and none is cut."""
    (summary,), (whole,) = written([], 1_000_000), written(DECISIONS, 1_000_000)
    counts = set()
    for largest in range(size(summary) + 8, size(whole) + 2):  # a part's number has two digits then
        values = written(DECISIONS, largest)
        assert [size(value) for value in values if size(value) > largest] == [], largest
        parts = [read(value) for value in values]
        assert [each for part in parts for each in part.decisions] == DECISIONS
        assert [part.part for part in parts] == list(range(len(parts)))
        assert [part.inputs is not None for part in parts] == [False] * (len(parts) - 1) + [True]
        counts.add(len(values))
    assert min(counts) == 1
    assert max(counts) > 3
