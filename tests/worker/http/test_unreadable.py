"""What a worker's status says where most of what comes cannot be read; and what it does not propose to send."""

from typing import Any

import pytest

from mistakebound.core.messages.dead_letters import SHOWN_BY
from mistakebound.core.replay.replay import Row
from mistakebound.settings import Settings
from mistakebound.worker.http.first_commands import first_commands
from tests.worker.support.page_steps import as_json, told_of


def notices(bad: int, good: int) -> list[tuple[str, str]]:
    """(level, text) of each, after so many examples whose feature is null, and others."""
    rows = [Row(str(n), {"x": None if n < bad else 1.0}, True) for n in range(bad + good)]
    found = as_json(told_of(Settings.model_validate({"learner": {"kind": "perceptron"}}), rows))
    return [(one["level"], one["text"]) for one in found["worker"]["notices"]]


def test_examples_that_cannot_be_read_are_told_with_the_command_that_shows_why() -> None:
    """Else the page would only say that there is no label yet."""
    assert notices(25, 5) == [("warning", f"25 of 30 examples could not be read. The reasons: {SHOWN_BY}.")]


@pytest.mark.parametrize(("bad", "good"), [(10, 20), (15, 0)])
def test_a_few_that_cannot_be_read_are_left_to_the_metrics(bad: int, good: int) -> None:
    """Among many that can, or altogether."""
    assert notices(bad, good) == []


@pytest.mark.parametrize(
    "messages",
    [{"format": "avro"}, {"labels_format": "protobuf"}, {"format": "json-schema", "labels_format": "json"}],
)
def test_no_commands_are_proposed_where_an_input_is_not_json(messages: Any) -> None:
    """`send` writes JSON: what it sent would be a dead letter."""
    assert first_commands(Settings.model_validate({"log": {"url": "sqlite:log.db"}})) != ()
    assert (
        first_commands(Settings.model_validate({"log": {"url": "sqlite:log.db"}, "messages": messages})) == ()
    )
