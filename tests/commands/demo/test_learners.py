"""Whoever tries another learner on the demo sees it learn: each does better than always the majority, as it comes."""

from typing import Any

import pytest

from mistakebound.commands.demo.pages import OUTSTANDING, read_pages
from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.replay.replay import replay_rows, report_of
from mistakebound.settings import Settings

GIVEN: dict[str, dict[str, Any]] = {
    "margin-perceptron": {"margin": 1.0},
    "normalized-margin-perceptron": {"gamma": 0.1},
}
"""What the learner asks for and nobody can choose for its users."""
TAKEN = [name for name, kind in KINDS.items() if not kind.boolean]
"""The pages have features of 0, 0.5 and 1."""


def settings_of(name: str, **learner: Any) -> Settings:
    features = {"normalize": "unit"} if KINDS[name].unit else {}
    return Settings.model_validate(
        {"learner": {"kind": name, **GIVEN.get(name, {}), **learner}, "features": features}
    )


@pytest.mark.parametrize("name", TAKEN)
def test_a_learner_with_its_defaults_beats_always_the_majority(name: str) -> None:
    """With labels as late as the demo's."""
    settings = settings_of(name)
    assert list(unmet(settings, 1)) == []

    report = report_of(replay_rows(read_pages(), settings, 1, OUTSTANDING))

    assert report.labelled == len(read_pages())
    assert report.mistakes < report.baselines["majority"].mistakes


def test_winnow_without_a_threshold_predicts_positive_for_every_page() -> None:
    """Which is what it did by default, and does where it is told to: the figures of older reports stay."""
    report = report_of(replay_rows(read_pages(), settings_of("winnow", threshold=0), 1, OUTSTANDING))

    assert report.mistakes == sum(row.label is False for row in read_pages()) == 702


def test_every_other_learner_is_boolean() -> None:
    """So none is left out by oversight."""
    assert {name for name in KINDS if name not in TAKEN} == {
        "littlestone-winnow",
        "elimination",
        "con",
        "halving",
    }
