"""Prometheus' own linter on the page that a worker serves."""

import pytest

from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker.metrics.metrics import Metrics
from tests.worker.support.events import committed, waiting
from tests.worker.support.promtool import lint

pytestmark = pytest.mark.promtool


def test_promtool_finds_nothing_on_a_fresh_page() -> None:
    """The page of a worker that has done nothing yet is clean."""
    assert lint(Metrics(["true", "false"], "perceptron", "abc").page()[0]) == ""


def test_promtool_finds_nothing_on_a_full_page() -> None:
    """The page with every series filled is clean, odd class names included."""
    metrics = Metrics(['sp"am', "line\nbreak", "größer\\"], "perceptron", "abc")
    facts = StepFacts(mistakes={'sp"am': 1, "line\nbreak": 2}, margins=[1.0], label_delays_seconds=[3.0])
    totals = PartitionTotals(
        examples=4,
        labelled=3,
        mistakes=2,
        baseline_mistakes=2,
        updates=2,
        waiting=1,
        parked=0,
        oldest_waiting_ms=5,
    )
    metrics.observe(committed(facts, {0: totals}))
    metrics.observe(waiting({0: 1}))
    metrics.margin(0.5, 0.25, 0.25)
    metrics.version_space(7)
    metrics.bounds([Bound("Novikoff", 63.5, 41, True, "updates", "R = 1")])
    assert lint(metrics.page()[0]) == ""


def test_promtool_would_have_found_something() -> None:
    """The check can fail: a counter without `_total` is reported."""
    assert "_total" in lint(b"# HELP mistakes Mistakes.\n# TYPE mistakes counter\nmistakes 1\n")
