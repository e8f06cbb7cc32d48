"""What is on a worker's metrics page, for tests of what is asked of it."""

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from mistakebound.core.messages.asking import Asked
from mistakebound.core.messages.reliability import Reliability
from mistakebound.core.messages.tenants import TenantCounts
from mistakebound.core.step.facts import ConfusionTotals
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker.metrics.metrics import Metrics
from tests.worker.support.events import NOTHING, asked, assigned, committed, probable, waiting


def worker_page() -> dict[str, set[str]]:
    """Every sample on a worker's page, with the names of its labels."""
    metrics = Metrics(["true", "false"], "perceptron", "digest", prefix="fraud.")
    metrics.observe(assigned([0]))
    judged = {("true", "false"): 1}
    counted = ConfusionTotals(
        mistakes={"model": 1}, pairs=judged, majority_pairs=judged, labelled={"true": 1},
        predicted={"false": 1}, correct={"true": 0}, costs={"model": 1.0},
    )  # fmt: skip
    metrics.observe(committed(totals={1: replace(NOTHING, confusion=counted)}))
    metrics.observe(waiting({0: 1}))
    tenant = TenantCounts("acme", 3, 2, 1, 0.5, 1, True)
    metrics.observe(committed(totals={2: replace(NOTHING, tenants=(tenant,))}))
    metrics.margin(0.5, 0.25, 0.25)
    metrics.proved_changes((1, 0), 1)
    metrics.version_space(7)
    metrics.expected_mistakes(1_097.0)
    metrics.observe(asked({0: Asked(labelled=3, missing=1)}))
    metrics.observe(probable({0: Reliability()}))
    metrics.bounds([Bound("Novikoff", 63.5, 41, True, "updates", "R = 1")])
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.page()[0].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    # Metrics of one value by partition appear with it.
    return found | {"mistakebound_pending_oldest_timestamp_seconds": {"partition", "prefix"}}
