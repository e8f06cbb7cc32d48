"""What a report says of counts: rates only of something, and who is worse than always the majority."""

import json
from typing import Any

import pytest

from mistakebound.core.messages.tallies import Tally, zero
from mistakebound.core.reporting.report import ModelSummary, PartitionCounts, Place, Rejected, Report, report
from mistakebound.core.reporting.status import status


def judged(*partitions: tuple[int, int, int], **more: Any) -> Report:
    """The report of partitions with so many (labelled, mistakes, mistakes of the majority)."""
    counts = []
    for labelled, mistakes, majority in partitions:
        life: Tally = zero()
        life.labels["applied"], life.mistakes, life.majority_mistakes = labelled, mistakes, majority
        counts.append(PartitionCounts(life, 0, 0))
    return report(counts, "perceptron", ModelSummary(1, (0,)), **more)


@pytest.mark.parametrize("partitions", [(), ((0, 0, 0),), ((0, 0, 0), (0, 0, 0))])
def test_of_nothing_there_is_no_rate(partitions: tuple[tuple[int, int, int], ...]) -> None:
    """0 would be the best rate there is; in JSON it is null."""
    found = json.loads(judged(*partitions).to_json())
    assert (found["mistake_rate"], found["baselines"]["majority"]["mistake_rate"]) == (None, None)


def test_a_rate_is_of_all_partitions_together() -> None:
    """One without labels changes nothing."""
    found = judged((3, 2, 1), (0, 0, 0), (5, 0, 3))
    assert (found.mistake_rate, found.baselines["majority"].mistake_rate) == (0.25, 0.5)


@pytest.mark.parametrize(
    ("partitions", "worse"),
    [
        ([(100, 51, 50)], True),
        ([(99, 99, 0)], False),  # too few to say so
        ([(100, 50, 50)], False),
        ([(100, 49, 50)], False),
        ([(50, 40, 20), (50, 11, 30)], True),  # 51 against 50
        ([(50, 40, 20), (50, 9, 30)], False),  # only in one partition
    ],
)
def test_more_mistakes_than_always_the_majority_are_worse_than_it(
    partitions: list[tuple[int, int, int]], worse: bool
) -> None:
    """Of all partitions together, and of at least a hundred labelled examples."""
    found = judged(*partitions)
    assert found.worse_than_majority is worse
    assert json.loads(found.to_json()).get("worse_than_majority", False) is worse


def test_a_report_with_nothing_more_to_tell_has_the_members_of_earlier_versions() -> None:
    """So that its bytes are theirs; `status` likewise."""
    for found in (judged((5, 1, 1)), status(judged((5, 1, 1)), {}, None)):
        assert not {"worse_than_majority", "rejected"} & set(json.loads(found.to_json()))


def test_what_was_rejected_is_told_in_json() -> None:
    """Stream, reason, count, the first one's place, and what is wrong with it."""
    one = Rejected("labels", "unknown-label", 3, Place(line=7), "label is 2; known: true, false")
    assert json.loads(judged((5, 1, 1), rejected=(one,)).to_json())["rejected"] == [
        {
            "stream": "labels",
            "reason": "unknown-label",
            "count": 3,
            "first": {"line": 7, "partition": None, "offset": None},
            "detail": "label is 2; known: true, false",
        }
    ]
