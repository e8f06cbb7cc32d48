"""What a worker's status says of a learner that is worse than always the majority, and of no label at all."""

from typing import Any

from mistakebound.core.replay.replay import Row
from mistakebound.settings import Settings
from tests.worker.support.page_steps import as_json, told_of


def told(count: int) -> Any:
    """After so many examples: their class comes every third time, and their feature does not tell it."""
    rows = [Row(str(n), {"x": float(n % 5)}, n % 3 == 1) for n in range(count)]
    return as_json(told_of(Settings.model_validate({"learner": {"kind": "perceptron"}}), rows))


def notices(found: Any) -> list[tuple[str, str]]:
    """(level, text) of each."""
    return [(one["level"], one["text"]) for one in found["worker"]["notices"]]


def test_a_learner_that_is_worse_than_always_the_majority_is_told_so() -> None:
    """A warning with both counts and what to do, and a field of the JSON."""
    found = told(150)
    assert found["worse_than_majority"] is True
    assert found["baselines"]["majority"]["mistakes"] == 50
    assert notices(found) == [
        (
            "warning",
            f"Worse than always the majority: {found['mistakes']} mistakes in 150 labels for life, where always "
            "predicting the most frequent class so far makes 50. Compare learners and settings with mistakebound replay.",
        )
    ]


def test_of_the_first_labels_nothing_is_said() -> None:
    """It was worse already, and nobody knows yet whether it will be."""
    found = told(99)
    assert found["mistakes"] > found["baselines"]["majority"]["mistakes"]
    assert "worse_than_majority" not in found
    assert notices(found) == []


def test_the_status_of_a_worker_without_labels_has_no_rate() -> None:
    """Null, as `status --json` has it."""
    found = told(0)
    assert (found["mistake_rate"], found["baselines"]["majority"]["mistake_rate"]) == (None, None)
