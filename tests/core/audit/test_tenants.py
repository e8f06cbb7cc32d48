"""The audit of a stream of tenants: honest logs are clean, and every count and name of theirs that is altered is found."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import decode_checkpoint
from mistakebound.core.faults import BadLog
from tests.core.audit.test_audit import Made
from tests.core.support.audited import of_history
from tests.core.support.every_kind import CASES
from tests.core.support.histories import History
from tests.support.tries import long

CASE = CASES["perceptron, tenants"]


def outcomes_place(made: Made) -> int:
    """The newest record of `outcomes` that has tallies."""
    values = made.log.values("outcomes", 0)
    return max(place for place, value in enumerate(values) if "tallies" in value)


def tallied(column: int) -> Callable[[Any], None]:
    def alter(value: Any) -> None:
        value["tallies"]["tenants"]["acme"][column] += 1

    return alter


@pytest.mark.parametrize("seed", [1, 2, *long(*range(3, 40))])
def test_histories_of_tenants_are_clean(seed: int) -> None:
    """Whatever happened to the worker, and with what its checkpoints hold."""
    history = History(Random(seed), CASE)
    with capture_logs():
        history.run()
    found = of_history(history).audit(*map(decode_checkpoint, history.checkpoints[:2]))
    assert found.first == []


@pytest.mark.parametrize("column", range(4))
def test_a_tenants_count_that_was_altered_is_found(column: int) -> None:
    """Predicted, labelled, mistakes, updates: by its tenant's name."""
    made = Made(CASE)
    made.log.rewrite("outcomes", 0, outcomes_place(made), tallied(column))
    (finding,) = made.log.audit().first
    assert "tenants.acme" in finding.text


def test_a_line_that_was_moved_to_the_others_is_found() -> None:
    """All counts together would still be right."""
    made = Made(CASE)

    def alter(value: Any) -> None:
        value["tallies"]["other_tenants"] = value["tallies"]["tenants"].pop("acme")

    made.log.rewrite("outcomes", 0, outcomes_place(made), alter)
    (finding,) = made.log.audit().first
    assert "other_tenants" in finding.text


@pytest.mark.parametrize("topic", ["predictions", "updates"])
@pytest.mark.parametrize("how", ["other", "gone"])
def test_a_tenant_that_was_altered_is_found(topic: Any, how: str) -> None:
    """In predictions and in updates; in the latter nothing can be learned without one."""
    made = Made(CASE)

    def alter(value: Any) -> None:
        if how == "gone":
            del value["tenant"]
        else:
            value["tenant"] = "nobody"

    place = next(n for n, value in enumerate(made.log.values(topic, 0)) if "tenant" in value)
    made.log.rewrite(topic, 0, place, alter)
    assert "tenant" in _told(made)


def test_a_tenant_of_a_parked_label_that_was_altered_is_found() -> None:
    """It is copied from the label into the decision."""
    made = Made(CASE)
    values = made.log.values("outcomes", 0)
    place, number = next(
        (place, number)
        for place, value in enumerate(values)
        for number, decision in enumerate(value["decisions"])
        if decision["outcome"] == "parked" and "tenant" in decision
    )

    def alter(value: Any) -> None:
        value["decisions"][number]["tenant"] = "nobody"

    made.log.rewrite("outcomes", 0, place, alter)
    assert "nobody" in _told(made)


def _told(made: Made) -> str:
    """All findings; or why the log could not be read."""
    try:
        return "\n".join(finding.text for finding in made.log.audit().first)
    except BadLog as error:
        return str(error)
