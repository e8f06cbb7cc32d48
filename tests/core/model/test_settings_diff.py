"""Two epochs' settings side by side."""

from typing import Any

import pytest

from mistakebound.core.model.settings_diff import Change, changes


def learner(**keys: Any) -> dict[str, Any]:
    return {"learner": keys}


def test_what_differs_is_named_by_its_key() -> None:
    """Also where one of the two has no such key."""
    assert changes(learner(tie="mistake"), learner(tie="positive", window=5)) == [
        Change("learner.tie", "mistake", "positive"),
        Change("learner.window", None, 5),
    ]


@pytest.mark.parametrize(("before", "after"), [(True, 1), (1, 1.0)])
def test_equal_values_of_different_types_differ(before: Any, after: Any) -> None:
    """One is learned as another class, or printed as another weight."""
    assert changes(learner(x=before), learner(x=after)) == [Change("learner.x", before, after)]


def test_an_epoch_that_said_no_to_costs_is_as_one_that_said_nothing() -> None:
    """Earlier versions wrote down what was said."""
    said, unsaid = learner(cost_sensitive=False), learner(cost_sensitive=None)
    assert changes(said, unsaid) == changes(unsaid, said) == changes(said, {}) == []
    assert changes(said, learner(cost_sensitive=True)) == [Change("learner.cost_sensitive", None, True)]
