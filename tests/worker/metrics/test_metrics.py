"""The metrics page as a contract: names, types, label values, and what a restart or a revocation does."""

import math
import re
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mistakebound.core.faults import REASONS
from mistakebound.core.messages.asking import Asked
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.reliability import Reliability
from mistakebound.core.messages.tenants import TenantCounts
from mistakebound.core.step.facts import ConfusionTotals, PartitionTotals, StepFacts
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker.events import (
    Assigned,
    LagMeasured,
    PhaseEntered,
    PollReturned,
    Rebuilding,
    Revoked,
    StateDropped,
    StepCommitted,
    TransactionEnded,
    TransactionOpened,
)
from mistakebound.worker.metrics.metrics import Metrics
from tests.worker.support.events import asked, assigned, committed, probable, waiting

TYPES = {
    "build_info": "gauge",
    "model_info": "gauge",
    "worker_info": "gauge",
    "ready": "gauge",
    "state": "gauge",
    "records_consumed_total": "counter",
    "records_rejected_total": "counter",
    "input_offsets_lost_total": "counter",
    "predictions_published_total": "counter",
    "evaluations_total": "counter",
    "mistakes_total": "counter",
    "baseline_mistakes_total": "counter",
    "model_updates_total": "counter",
    "labels_total": "counter",
    "examples_total": "counter",
    "labels_asked_total": "counter",
    "label_delay_seconds": "histogram",
    "prediction_margin": "histogram",
    "prediction_latency_seconds": "histogram",
    "batch_duration_seconds": "histogram",
    "transactions_total": "counter",
    "transaction_duration_seconds": "histogram",
    "open_transaction_age_seconds": "gauge",
    "rebuilds_total": "counter",
    "rebalances_total": "counter",
    "assigned_partitions": "gauge",
    "consumer_lag_records": "gauge",
    "last_poll_timestamp_seconds": "gauge",
    "last_record_timestamp_seconds": "gauge",
    "partition_examples": "gauge",
    "partition_labelled": "gauge",
    "partition_mistakes": "gauge",
    "partition_baseline_mistakes": "gauge",
    "partition_updates": "gauge",
    "partition_waiting": "gauge",
    "partition_parked": "gauge",
    "partition_asked_labelled": "gauge",
    "partition_asked_missing": "gauge",
    "partition_asked_mistakes": "gauge",
    "partition_estimated_mistakes": "gauge",
    "partition_probabilities_judged": "gauge",
    "partition_positives_expected": "gauge",
    "partition_positives_observed": "gauge",
    "partition_squared_error": "gauge",
    "partition_compared": "gauge",
    "partition_compared_mistakes": "gauge",
    "partition_cost": "gauge",
    "partition_confusion": "gauge",
    "partition_majority_confusion": "gauge",
    "partition_class_labelled": "gauge",
    "partition_class_predicted": "gauge",
    "partition_class_correct": "gauge",
    "tenant_labelled": "gauge",
    "tenant_mistakes": "gauge",
    "misplaced_labels": "gauge",
    "waiting_limit": "gauge",
    "parked_limit": "gauge",
    "pending_oldest_timestamp_seconds": "gauge",
    "epoch": "gauge",
    "followed_updates_lag": "gauge",
    "model_nonzero_weights": "gauge",
    "model_weight_norm": "gauge",
    "mistake_bound": "gauge",
    "bounded_events": "gauge",
    "proved_changes": "gauge",
    "checkpoints_total": "counter",
    "checkpoint_read_failures_total": "counter",
    "checkpoint_duration_seconds": "histogram",
    "checkpoint_last_success_timestamp_seconds": "gauge",
    "checkpoint_size_bytes": "gauge",
    "checkpoint_pending_updates": "gauge",
    "log_messages_total": "counter",
}

KNOWN = {
    "state": {("restoring",), ("running",), ("draining",)},
    "records_consumed_total": {("examples",), ("labels",)},
    "records_rejected_total": {(reason, stream) for reason in REASONS for stream in ("examples", "labels")},
    "input_offsets_lost_total": {("examples",), ("labels",)},
    "predictions_published_total": {("true",), ("false",)},
    "evaluations_total": {(a, p) for a in ("true", "false") for p in ("true", "false")},
    "mistakes_total": {("true",), ("false",)},
    "baseline_mistakes_total": {("majority",)},
    "model_updates_total": {("promote",), ("demote",)},
    "labels_total": {
        ("applied",),
        ("duplicate",),
        ("conflict",),
        ("expired",),
        ("unmatched",),
        ("applied_late",),
        ("invalid",),
    },
    "labels_asked_total": {("true",), ("false",)},
    "examples_total": {("labelled",), ("expired",), ("evicted",), ("duplicate",), ("invalid",)},
    "transactions_total": {("committed",), ("stale",), ("fenced",), ("failed",)},
    "rebuilds_total": {("stale",), ("fenced",), ("failed",), ("unreachable",)},
    "checkpoints_total": {("success",), ("failure",)},
    "log_messages_total": {("debug",), ("info",), ("warning",), ("error",), ("critical",)},
}

TOTALS = PartitionTotals(
    examples=40,
    labelled=30,
    mistakes=7,
    baseline_mistakes=11,
    updates=6,
    waiting=9,
    parked=2,
    oldest_waiting_ms=1_700_000_000_500,
    confusion=ConfusionTotals(
        compared=12,
        mistakes={"model": 4, "majority": 5, "label_before": 6},
        pairs={("true", "false"): 4, ("false", "false"): 8},
        majority_pairs={("true", "false"): 4, ("false", "true"): 1},
        labelled={"true": 4, "false": 8},
        predicted={"true": 0, "false": 12},
        correct={"true": 0, "false": 8},
        costs={"model": 100.0, "majority": 101.5},
    ),
)


def binary() -> Metrics:
    return Metrics(["true", "false"], "perceptron", "abc123")


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """(name without prefix, label values in the order of their names) -> value."""
    return {
        (
            each.name.removeprefix("mistakebound_"),
            tuple(v for _, v in sorted(each.labels.items())),
        ): each.value
        for family in text_string_to_metric_families(metrics.page()[0].decode())
        for each in family.samples
    }


def test_names_and_types_are_the_contract() -> None:
    """Every metric has its name and type, and there is no other of ours."""
    page = binary().page()[0].decode()
    assert dict(re.findall(r"^# TYPE mistakebound_(\S+) (\S+)$", page, re.MULTILINE)) == TYPES


def test_every_metric_has_a_help_text_that_is_a_sentence() -> None:
    """A reader of the page finds out what each metric means."""
    page = binary().page()[0].decode()
    helps = dict(re.findall(r"^# HELP mistakebound_(\S+) (.+)$", page, re.MULTILINE))
    assert helps.keys() == TYPES.keys()
    assert [name for name, text in helps.items() if not text.endswith(".") or not text[0].isupper()] == []


def test_every_known_label_value_is_there_at_zero_from_the_start() -> None:
    """`rate` and alerts see the first event, because its series existed before it."""
    fresh = samples(binary())
    for name, known in KNOWN.items():
        found = {labels: value for (each, labels), value in fresh.items() if each == name}
        found.pop(("starting",), None)
        assert found == dict.fromkeys(known, 0.0), name


def test_build_and_model_are_described() -> None:
    """Version and configuration are on info series, not on every series."""
    page = Metrics(["true", "false"], "winnow", "abc123", revision="f00").page()[0].decode()
    assert re.search(r'mistakebound_build_info\{python_version="\S+",revision="f00",version="\S+"\} 1', page)
    assert 'mistakebound_model_info{algorithm="winnow",config_digest="abc123"} 1.0' in page


def test_a_worker_is_described() -> None:
    """Its group, its slot and what it reads, to look a series up by."""
    worker = {"group": "fraud.mistakebound", "slot": "w-0", "examples": "payments", "labels": "chargebacks"}
    page = Metrics(["true"], "winnow", "abc", worker=worker).page()[0].decode()
    labels = 'examples="payments",group="fraud.mistakebound",labels="chargebacks",slot="w-0"'
    assert f"mistakebound_worker_info{{{labels}}} 1.0" in page


def test_every_series_has_the_prefix_and_none_has_an_empty_one() -> None:
    """Two models under one job are never added up by accident; to Prometheus an empty label is no label."""

    def prefixes(metrics: Metrics, accept: str = "") -> set[str | None]:
        families = text_string_to_metric_families(metrics.page(accept)[0].decode())
        return {sample.labels.get("prefix") for family in families for sample in family.samples}

    assert prefixes(Metrics(["true"], "winnow", "abc", prefix="fraud.")) == {"fraud."}
    assert prefixes(Metrics(["true"], "winnow", "abc")) == {None}


def test_the_prefix_makes_no_series_more() -> None:
    """One value for each worker."""
    assert len(samples(Metrics(["true"], "winnow", "abc", prefix="fraud."))) == len(
        samples(Metrics(["true"], "winnow", "abc"))
    )


def test_readiness_is_asked_at_each_scrape() -> None:
    """A worker that restores is up, and not ready."""
    metrics = binary()
    assert samples(metrics)["ready", ()] == 0
    ready = True
    metrics.readiness(lambda: ready)
    assert samples(metrics)["ready", ()] == 1
    ready = False
    assert samples(metrics)["ready", ()] == 0


def test_process_and_python_series_are_included() -> None:
    """CPU, memory and garbage collection come with the page."""
    names = {name for name, _ in samples(binary())}
    assert {"process_cpu_seconds_total", "python_info", "python_gc_collections_total"} <= names


def test_no_created_series_are_exported() -> None:
    """Creation times would double the number of counters' series."""
    metrics = binary()
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        assert b"_created" not in metrics.page(accept)[0]


def test_openmetrics_is_served_when_asked_for() -> None:
    """The same page in OpenMetrics, with its content type."""
    page, content_type = binary().page("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert page.endswith(b"# EOF\n")


def test_a_step_adds_its_facts() -> None:
    """Each count of a committed step lands on its series, twice when it is told twice."""
    metrics = binary()
    facts = StepFacts(
        consumed={"examples": 5, "labels": 4},
        rejected={("labels", "unknown-label"): 1},
        predicted={"true": 3, "false": 2},
        evaluations={("true", "false"): 1, ("false", "false"): 2},
        mistakes={"true": 1},
        baseline_mistakes=2,
        updates={"promote": 1},
        labels={"applied": 3, "invalid": 1},
        examples={"labelled": 3},
        label_delays_seconds=[2.0, 70.0, 1e9],
        margins=[0.0, 0.5, 2.0, 2.0, 1e6],
        predicted_record_ms=[1_000_000, 1_001_000],
        newest_record_ms={"examples": 1_001_000},
    )
    for _ in range(2):
        metrics.observe(StepCommitted(facts, {}, 0.004, 1_001.2))
    seen = samples(metrics)
    assert seen["records_consumed_total", ("examples",)] == 10
    assert seen["records_consumed_total", ("labels",)] == 8
    assert seen["records_rejected_total", ("unknown-label", "labels")] == 2
    assert seen["predictions_published_total", ("true",)] == 6
    assert seen["evaluations_total", ("true", "false")] == 2
    assert seen["evaluations_total", ("false", "false")] == 4
    assert seen["mistakes_total", ("true",)] == 2
    assert seen["baseline_mistakes_total", ("majority",)] == 4
    assert seen["model_updates_total", ("promote",)] == 2
    assert seen["labels_total", ("applied",)] == 6
    assert seen["examples_total", ("labelled",)] == 6
    assert seen["label_delay_seconds_bucket", ("60.0",)] == 2
    assert seen["label_delay_seconds_bucket", ("300.0",)] == 4
    assert seen["label_delay_seconds_count", ()] == 6
    assert seen["prediction_margin_bucket", ("0.0",)] == 2
    assert seen["prediction_margin_bucket", ("1000.0",)] == 8
    assert seen["prediction_margin_bucket", ("+Inf",)] == 10
    assert seen["prediction_latency_seconds_bucket", ("0.25",)] == 2
    assert seen["prediction_latency_seconds_count", ()] == 4
    assert seen["batch_duration_seconds_count", ()] == 2
    assert seen["last_record_timestamp_seconds", ("examples",)] == 1_001


def test_the_newest_record_time_never_goes_back() -> None:
    """A producer whose clock is behind does not make the stream look older."""
    metrics = binary()
    for newest in (9_000, 4_000):
        metrics.observe(committed(StepFacts(newest_record_ms={"labels": newest})))
    assert samples(metrics)["last_record_timestamp_seconds", ("labels",)] == 9


def test_sums_stay_finite_and_never_fall() -> None:
    """Infinite scores and clocks that disagree leave the histograms' sums usable."""
    metrics = binary()
    odd = StepFacts(margins=[math.inf, math.nan, 1.5], label_delays_seconds=[-3.0, 2.0])
    metrics.observe(committed(odd))
    seen = samples(metrics)
    assert seen["prediction_margin_sum", ()] == 1.5
    assert seen["prediction_margin_count", ()] == 3
    assert seen["label_delay_seconds_sum", ()] == 2.0
    assert seen["label_delay_seconds_bucket", ("1.0",)] == 1


def test_durable_totals_are_gauges_by_partition() -> None:
    """The owner exports what outlives it, with the baseline beside the mistakes."""
    metrics = binary()
    metrics.observe(committed(totals={3: TOTALS}))
    seen = samples(metrics)
    names = ("examples", "labelled", "mistakes", "baseline_mistakes", "updates", "waiting", "parked")
    assert [seen["partition_" + name, ("3",)] for name in names] == [40, 30, 7, 11, 6, 9, 2]
    assert seen["pending_oldest_timestamp_seconds", ("3",)] == 1_700_000_000.5


def test_labels_asked_for_are_exported_only_where_labels_are_asked_for() -> None:
    """Their counts by partition, and the mistakes that they estimate."""
    metrics = binary()
    metrics.observe(committed(totals={0: TOTALS}))
    assert not [name for name, _ in samples(metrics) if name.startswith("partition_asked")]
    metrics.observe(committed(StepFacts(asked={True: 2, False: 5})))
    metrics.observe(asked({1: Asked(labelled=9, missing=1, mistakes=4, estimate=5_500_000)}))
    seen = samples(metrics)
    assert seen["labels_asked_total", ("true",)] == 2
    assert seen["labels_asked_total", ("false",)] == 5
    found = [
        seen["partition_" + name, ("1",)] for name in ("asked_labelled", "asked_missing", "asked_mistakes")
    ]
    assert found == [9, 1, 4]
    assert seen["partition_estimated_mistakes", ("1",)] == 5.5


def test_confusions_are_gauges_by_partition_of_what_came() -> None:
    """By true and predicted class, and by class; what the majority would have come to beside it."""
    metrics = binary()
    metrics.observe(committed(totals={3: TOTALS}))
    seen = samples(metrics)
    pairs = {labels: count for (name, labels), count in seen.items() if name == "partition_confusion"}
    assert pairs == {("true", "3", "false"): 4, ("false", "3", "false"): 8}
    assert seen["partition_majority_confusion", ("false", "3", "true")] == 1
    assert seen["partition_class_labelled", ("false", "3")] == 8
    assert seen["partition_compared", ("3",)] == 12
    assert seen["partition_compared_mistakes", ("label_before", "3")] == 6
    assert seen["partition_cost", ("majority", "3")] == 101.5


@pytest.mark.parametrize("classes", [[], [f"c{number}" for number in range(21)]])
def test_of_many_or_open_classes_confusions_are_no_series(classes: list[str]) -> None:
    """How many were mistaken is told all the same."""
    metrics = Metrics(classes, "perceptron", "abc123")
    metrics.observe(committed(totals={3: TOTALS}))
    seen = samples(metrics)
    assert not {name for name, _ in seen if name.startswith("partition_cl") or "confusion" in name}
    assert seen["partition_compared_mistakes", ("model", "3")] == 4


def test_a_class_of_an_older_epoch_is_another_one_in_confusions() -> None:
    """Two such are added up."""
    metrics = Metrics(["a", "b"], "perceptron", "abc123")
    old = ConfusionTotals(pairs={("x", "a"): 2, ("y", "a"): 3}, labelled={"x": 2, "y": 3, "a": 0})
    metrics.observe(committed(totals={0: replace(TOTALS, confusion=old)}))
    seen = samples(metrics)
    assert seen["partition_confusion", ("other", "0", "a")] == 5
    assert seen["partition_class_labelled", ("other", "0")] == 5


def test_probabilities_are_exported_only_where_they_were_judged() -> None:
    """What the Brier score, and the share of positives, are made of."""
    metrics, counts = binary(), Reliability()
    metrics.observe(committed(totals={0: TOTALS}))
    assert ("partition_squared_error", ("0",)) not in samples(metrics)
    counts.count(12, 800_000, positive=True)
    counts.count(3, 100_000, positive=False)
    metrics.observe(probable({1: counts}))
    seen = samples(metrics)
    names = ("probabilities_judged", "positives_expected", "positives_observed", "squared_error")
    assert [seen["partition_" + name, ("1",)] for name in names] == [2, 0.9, 1, 0.05]


def test_nothing_is_said_of_the_oldest_when_nothing_waits() -> None:
    """No age alert fires on an empty waiting room."""
    metrics = binary()
    metrics.observe(committed(totals={0: TOTALS}))
    nobody_waits = PartitionTotals(
        examples=40, labelled=40, mistakes=7, baseline_mistakes=11, updates=6, waiting=0, parked=0
    )
    metrics.observe(committed(totals={0: nobody_waits}))
    assert ("pending_oldest_timestamp_seconds", ("0",)) not in samples(metrics)


def of_tenants(*tenants: tuple[str | None, int, int]) -> PartitionTotals:
    """(tenant, labelled, mistakes) each."""
    counts = [TenantCounts(name, 9, labelled, wrong, None, 0, True) for name, labelled, wrong in tenants]
    return replace(TOTALS, tenants=counts)


def tenants_seen(metrics: Metrics) -> dict[tuple[str, ...], tuple[float, float]]:
    """(partition, tenant) -> labelled and mistakes."""
    seen = samples(metrics)
    return {
        labels: (value, seen["tenant_mistakes", labels])
        for (name, labels), value in seen.items()
        if name == "tenant_labelled"
    }


def test_the_largest_tenants_have_series_of_their_own() -> None:
    """One that is no longer among them has none, and its counts are with the others; so has none of a partition that
    moved away."""
    metrics = binary()
    metrics.observe(committed(totals={0: of_tenants(("acme", 4, 1), ("zeta", 3, 2), (None, 7, 5))}))
    metrics.observe(committed(totals={1: of_tenants(("acme", 1, 0))}))
    assert tenants_seen(metrics) == {
        ("0", "acme"): (4, 1), ("0", "zeta"): (3, 2), ("0", "other"): (7, 5), ("1", "acme"): (1, 0),
    }  # fmt: skip
    metrics.observe(committed(totals={0: of_tenants(("acme", 5, 1), ("new", 9, 9), (None, 10, 7))}))
    metrics.observe(Revoked([1]))
    assert tenants_seen(metrics) == {("0", "acme"): (5, 1), ("0", "new"): (9, 9), ("0", "other"): (10, 7)}


def test_a_tenant_that_is_called_other_is_counted_with_the_others() -> None:
    """A label value can mean one thing only."""
    metrics = binary()
    metrics.observe(committed(totals={0: of_tenants(("other", 4, 1), (None, 7, 5))}))
    assert tenants_seen(metrics) == {("0", "other"): (11, 6)}


def test_a_revoked_partition_leaves_no_series() -> None:
    """Two workers never both export a partition, so sums over workers are right."""
    metrics = binary()
    for partition in (0, 1):
        metrics.observe(committed(totals={partition: TOTALS}))
        metrics.observe(LagMeasured({("examples", partition): 5, ("labels", partition): 6}, 0))
    metrics.observe(Revoked([0, 7]))  # 7 was never owned: nothing to remove
    durable = {
        name: labels
        for name, labels in samples(metrics)
        if name.startswith("partition_") or name == "pending_oldest_timestamp_seconds"
    }
    assert len(durable) == 16
    assert {labels for labels in durable.values() if len(labels) == 1} == {("1",)}
    assert all("1" in labels for labels in durable.values())
    lags = {labels for name, labels in samples(metrics) if name == "consumer_lag_records"}
    assert lags == {("1", "examples"), ("1", "labels")}


def test_a_worker_that_holds_nothing_exports_no_partition() -> None:
    """While it waits for its log another worker may own them, and would export them, too."""
    metrics = binary()
    metrics.observe(assigned([0, 1]))
    metrics.observe(waiting({0: 3, 1: 3}))
    metrics.observe(StateDropped())
    seen = {name for name, _ in samples(metrics)}
    assert not {name for name in seen if name.startswith("partition_") or name == "consumer_lag_records"}


def test_a_restart_begins_at_zero_while_durable_gauges_go_on() -> None:
    """A new process counts from zero, whatever it restored, and shows the totals it found."""
    before = binary()
    before.observe(committed(StepFacts(mistakes={"true": 7}), {0: TOTALS}))
    after = binary()
    after.restored(size_bytes=10, at_s=5.0)
    after.observe(Assigned(1, {0: TOTALS}))
    assert samples(before)["mistakes_total", ("true",)] == 7
    assert samples(after)["mistakes_total", ("true",)] == 0
    assert samples(after)["partition_mistakes", ("0",)] == samples(before)["partition_mistakes", ("0",)]


def test_the_age_of_an_open_transaction_grows_until_it_ends() -> None:
    """A stuck commit is seen by the scrape, though the loop says nothing more."""
    now = 100.0
    metrics = Metrics(["true", "false"], "perceptron", "abc", clock=lambda: now)
    assert samples(metrics)["open_transaction_age_seconds", ()] == 0
    metrics.observe(TransactionOpened())
    now = 112.5
    assert samples(metrics)["open_transaction_age_seconds", ()] == 12.5
    metrics.observe(TransactionEnded("failed", 12.5))
    seen = samples(metrics)
    assert seen["open_transaction_age_seconds", ()] == 0
    assert seen["transactions_total", ("failed",)] == 1
    assert seen["transaction_duration_seconds_count", ()] == 1


def test_what_the_loop_says_lands_on_its_series() -> None:
    """State, polls, assignment, rebuilds, model, checkpoints and log messages are each exported."""
    metrics = binary()
    metrics.observe(PhaseEntered("running"))
    metrics.observe(PollReturned(11.0))
    metrics.observe(Assigned(2, dict.fromkeys(range(4), TOTALS)))
    metrics.observe(Rebuilding("stale"))
    metrics.limits(max_waiting=1000, max_parked=10)
    metrics.observe(LagMeasured({}, 17))
    metrics.model(nonzero_weights=5, weight_norm=2.5)
    metrics.checkpoint_pending(3)
    metrics.checkpointed(0.02, 4096, 12.0)
    metrics.checkpoint_failed()
    metrics.logged("warning")
    metrics.logged("notice")
    seen = samples(metrics)
    expected = {
        ("state", ("running",)): 1,
        ("state", ("starting",)): 0,
        ("last_poll_timestamp_seconds", ()): 11,
        ("assigned_partitions", ("examples",)): 4,
        ("rebalances_total", ()): 1,
        ("rebuilds_total", ("stale",)): 1,
        ("waiting_limit", ()): 1000,
        ("parked_limit", ()): 10,
        ("epoch", ()): 2,
        ("followed_updates_lag", ()): 17,
        ("model_nonzero_weights", ()): 5,
        ("model_weight_norm", ()): 2.5,
        ("checkpoint_pending_updates", ()): 3,
        ("checkpoints_total", ("success",)): 1,
        ("checkpoints_total", ("failure",)): 1,
        ("checkpoint_size_bytes", ()): 4096,
        ("checkpoint_last_success_timestamp_seconds", ()): 12,
        ("checkpoint_duration_seconds_count", ()): 1,
        ("log_messages_total", ("warning",)): 1,
        ("log_messages_total", ("debug",)): 1,
    }
    assert {key: seen[key] for key in expected} == expected


def test_what_nobody_proved_is_not_on_the_page() -> None:
    """A margin, a declared margin or a version space of zero is never shown for want of one."""
    metrics = binary()
    names = (
        "margin_upper_bound", "margin_upper_bound_window", "declared_margin", "version_space_concepts",
        "learner_window", "counting_updates",
    )  # fmt: skip
    assert not [name for name in names if (name, ()) in samples(metrics)]
    for bound in (0.5, 0.25):
        metrics.margin(bound, 0.75, 0.3)
        metrics.version_space(0)
        metrics.window(100, 380)
    assert [samples(metrics)[name, ()] for name in names] == [0.25, 0.75, 0.3, 0, 100, 380]
    metrics.margin(None, None, None)
    metrics.version_space(None)
    metrics.window(None, None)
    assert not [name for name in names if (name, ()) in samples(metrics)]


def test_a_bound_stands_beside_the_count_it_bounds() -> None:
    """By theorem and by what it counts; one that speaks no more is gone, not at its last value."""
    metrics = binary()
    updates = Bound("Novikoff", 63.5, 41, True, "updates", "R = 1")
    mistakes = Bound("Novikoff", 127.0, 130, False, "mistakes", "R = 1, 2 waiting")
    metrics.bounds((updates, mistakes))
    found = samples(metrics)
    assert (
        found["mistake_bound", ("updates", "Novikoff")],
        found["bounded_events", ("updates", "Novikoff")],
    ) == (63.5, 41)
    assert found["mistake_bound", ("mistakes", "Novikoff")] == 127
    assert found["bounded_events", ("mistakes", "Novikoff")] == 130
    metrics.bounds((updates,))
    assert ("mistake_bound", ("mistakes", "Novikoff")) not in samples(metrics)
    assert ("bounded_events", ("mistakes", "Novikoff")) not in samples(metrics)
    assert samples(metrics)["bounded_events", ("updates", "Novikoff")] == 41


def test_rounding_raises_no_alarm() -> None:
    """A bound that holds is not below its count by the last bit: the alert compares the two."""
    metrics = binary()
    metrics.bounds([Bound("Novikoff", 2.9999999999999996, 3, True, "updates", "R = 1")])
    assert samples(metrics)["mistake_bound", ("updates", "Novikoff")] == 3


@pytest.mark.parametrize(("count", "labelled"), [(20, True), (21, False), (0, False)])
def test_classes_are_labels_up_to_twenty(count: int, labelled: bool) -> None:
    """More classes, or an open set, keep the totals and lose the label."""
    classes = [f"c{number}" for number in range(count)]
    metrics = Metrics(classes, "perceptron", "abc")
    metrics.observe(committed(StepFacts(mistakes={"c0": 2, "c1": 3}, evaluations={("c0", "c1"): 5})))
    mistakes = {
        labels: value for (name, labels), value in samples(metrics).items() if name == "mistakes_total"
    }
    assert len(mistakes) == (20 if labelled else 1)
    assert sum(mistakes.values()) == 5


def test_a_class_of_an_older_epoch_counts_as_other() -> None:
    """A late label for a class that the settings no longer have is not lost, and adds one series at most."""
    metrics = binary()
    metrics.observe(committed(StepFacts(mistakes={"spam": 1, "eggs": 1})))
    assert samples(metrics)["mistakes_total", ("other",)] == 2


@pytest.mark.parametrize(("label", "text"), [(True, "true"), (False, "false"), (1, "1"), ("spam", "spam")])
def test_classes_are_spelled_as_in_json(label: bool | int | str, text: str) -> None:
    """A class reads on a dashboard as it does in a message, without quotes."""
    assert spelled(label) == text
