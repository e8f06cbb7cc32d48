"""The first dead letter for a reason is told by a running worker, once; and where to read more is a command that there is."""

from structlog.testing import capture_logs

from mistakebound.core.messages.dead_letters import SHOWN_BY
from mistakebound.core.step.facts import StepFacts
from mistakebound.worker.first_rejections import FirstRejections
from tests.worker.support.events import committed


def test_each_reason_is_told_once_for_each_input() -> None:
    """With how many there were in that step; what comes later is for the metrics."""
    watching = FirstRejections()
    with capture_logs() as logs:
        for rejected in (
            {},
            {("labels", "not-json"): 1, ("examples", "not-json"): 3},
            {("examples", "not-json"): 5},
            {("examples", "not-json"): 1, ("examples", "bad-features"): 2},
        ):
            watching.observe(committed(StepFacts(rejected=rejected)))
    assert [(one["stream"], one["reason"], one["records"]) for one in logs] == [
        ("examples", "not-json", 3),
        ("labels", "not-json", 1),
        ("examples", "bad-features", 2),
    ]
    assert {(one["event"], one["log_level"], one["see"]) for one in logs} == {
        ("records_rejected", "warning", SHOWN_BY)
    }
