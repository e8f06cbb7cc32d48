"""Every metric the worker exports: its name, labels and meaning. No other module names one.

1. Counters start at zero with the process and are never restored: to Prometheus a restored counter looks like
   a reset, and is counted twice.
2. What must outlive the process is a gauge by `partition`, exported by its owner and removed when the
   partition moves away, so `sum` over all workers is right.
3. Every label value that is known in advance is exported from the start, at zero.
4. Up to 20 classes are label values; with more, or an open set, the series have no class label. Of each partition's
   tenants the 20 largest are, and the rest are `other`.
5. Every series has the `prefix` of the log it counts on, where that is not empty: what is counted of two models must
   not be added up, and a job may have both. It is one value for each worker, so it makes no series more.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, get_args

from prometheus_client import Enum, Info
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from mistakebound.core.faults import REASONS
from mistakebound.core.messages.tallies import ExampleOutcome, LabelOutcome
from mistakebound.core.records import Stream
from mistakebound.core.step.facts import Direction
from mistakebound.worker.events import PHASES, RebuildReason, TransactionResult
from mistakebound.worker.metrics.beside_gauges import BesideGauges
from mistakebound.worker.metrics.confusion_gauges import ConfusionGauges
from mistakebound.worker.metrics.registry import PREFIX, Registry
from mistakebound.worker.metrics.tenants import TenantGauges

MOST_CLASSES = 20
STREAMS = get_args(Stream)

CheckpointResult = Literal["success", "failure"]
Level = Literal["debug", "info", "warning", "error", "critical"]

LABEL_DELAYS_S = (1, 5, 15, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800, 1209600)
MARGINS = (0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
LATENCIES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
DURATIONS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_TOTALS = {
    "examples": "Examples predicted, over the life of the partition.",
    "labelled": "Predictions judged by their label, over the life of the partition.",
    "mistakes": "Predictions that differed from their label, over the life of the partition.",
    "baseline_mistakes": "Mistakes that always predicting the majority class so far would have made, "
    "over the life of the partition.",
    "updates": "Updates of the model made on the partition in the current epoch.",
    "waiting": "Examples waiting for their label.",
    "parked": "Labels waiting for their example.",
}


class Definitions:
    """All metrics of one worker, in a registry of its own."""

    def __init__(
        self,
        classes: Sequence[str],
        algorithm: str,
        config_digest: str,
        revision: str,
        transaction_age_s: Callable[[], float],
        prefix: str,
        worker: Mapping[str, str],
    ) -> None:
        self.registry = Registry({"prefix": prefix})
        self.classes = tuple(classes) if len(classes) <= MOST_CLASSES else ()
        self._declare_worker(algorithm, config_digest, revision, worker)
        self._declare_stream(transaction_age_s)
        self._declare_learning()
        self._declare_partitions()
        self._declare_checkpoints()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def _declare_worker(
        self, algorithm: str, config_digest: str, revision: str, worker: Mapping[str, str]
    ) -> None:
        add = self.registry
        Info(PREFIX + "build", "Build of the running worker; constant 1.", registry=add).info(
            {"version": build_version(), "revision": revision, "python_version": platform.python_version()}
        )
        self.model = Info(PREFIX + "model", "Configuration of the served model; constant 1.", registry=add)
        self.model.info({"algorithm": algorithm, "config_digest": config_digest})
        Info(
            PREFIX + "worker", "Group, slot and input topics of this worker; constant 1.", registry=add
        ).info({name: worker.get(name, "") for name in ("group", "slot", "examples", "labels")})
        self.state = Enum(PREFIX + "state", "What the worker is doing.", states=PHASES, registry=add)
        self.ready = add.gauge("ready", "Whether /readyz says yes: 1, or 0.")
        self.messages = add.counter("log_messages", "Log messages emitted, by level.", level=get_args(Level))
        self.poll_time = add.gauge("last_poll_timestamp_seconds", "Unix time of the last completed poll.")
        self.rebalances = add.counter("rebalances", "Changes of the partitions assigned to this worker.")
        self.assigned = add.gauge("assigned_partitions", "Partitions assigned to this worker.", topic=STREAMS)
        self.rebuilds = add.counter(
            "rebuilds",
            "Rebuilds of a partition's state from the log, by reason.",
            reason=get_args(RebuildReason),
        )

    def _declare_stream(self, transaction_age_s: Callable[[], float]) -> None:
        add = self.registry
        self.consumed = add.counter(
            "records_consumed", "Input records consumed in committed steps, by stream.", stream=STREAMS
        )
        self.rejected = add.counter(
            "records_rejected", "Input records sent to the dead letters.", stream=STREAMS, reason=REASONS
        )
        self.lost = add.counter(
            "input_offsets_lost",
            "Offsets of input deleted or damaged before it was read, and passed on demand.",
            stream=STREAMS,
        )
        self.record_time = add.gauge(
            "last_record_timestamp_seconds", "Largest record time consumed, by stream.", stream=STREAMS
        )
        self.lag = add.gauge(
            "consumer_lag_records",
            "Records between this worker's position and the end of the partition.",
            topic=(),
            partition=(),
        )
        self.batch_duration = add.histogram(
            "batch_duration_seconds", "Time of one step, commit included.", DURATIONS_S
        )
        self.latency = add.batches(
            "prediction_latency_seconds",
            "Time from an example's record time to the commit of its prediction.",
            LATENCIES_S,
        )
        self.transactions = add.counter(
            "transactions", "Transactions ended, by result.", result=get_args(TransactionResult)
        )
        self.transaction_duration = add.histogram(
            "transaction_duration_seconds", "Time from opening a transaction to its end.", DURATIONS_S
        )
        add.gauge(
            "open_transaction_age_seconds", "Age of this worker's open transaction; 0 when none is open."
        ).set_function(transaction_age_s)

    def _declare_learning(self) -> None:
        add = self.registry
        by_predicted: dict[str, Sequence[str]] = {"predicted": self.classes} if self.classes else {}
        by_actual: dict[str, Sequence[str]] = {"actual": self.classes} if self.classes else {}
        self.predictions = add.counter(
            "predictions_published", "Predictions committed, by predicted class.", **by_predicted
        )
        self.evaluations = add.counter(
            "evaluations", "Published predictions judged by their label.", **by_actual, **by_predicted
        )
        self.mistakes = add.counter(
            "mistakes", "Published predictions that differed from their label, by true class.", **by_actual
        )
        self.baseline_mistakes = add.counter(
            "baseline_mistakes",
            "Mistakes that a baseline would have made on the judged examples.",
            baseline=("majority",),
        )
        self.updates = add.counter(
            "model_updates", "Updates of the model made here, by direction.", direction=get_args(Direction)
        )
        self.labels = add.counter("labels", "Labels, by what became of them.", outcome=get_args(LabelOutcome))
        self.examples = add.counter(
            "examples", "Examples, by what became of them.", outcome=get_args(ExampleOutcome)
        )
        self.asked = add.counter(
            "labels_asked",
            "Predictions committed while labels are asked for, by whether theirs is.",
            asked=("true", "false"),
        )
        self.expected = add.late_gauge(
            "expected_mistakes_bound",
            "Most mistakes to be expected in this epoch, on average over the labels asked for; one run may make more.",
        )
        self.label_delay = add.batches(
            "label_delay_seconds", "Time from an example's record to its label's record.", LABEL_DELAYS_S
        )
        self.margin = add.batches(
            "prediction_margin", "Distance of a prediction's score from the decision threshold.", MARGINS
        )
        self.epoch = add.gauge("epoch", "Epoch of the served model; 0 before it is known.")
        self.nonzero = add.gauge("model_nonzero_weights", "Weights that differ from their initial value.")
        self.norm = add.gauge("model_weight_norm", "Euclidean norm of the weights.")
        self.followed_lag = add.gauge(
            "followed_updates_lag", "Updates by other workers that are committed and not yet folded here."
        )
        self.bound = add.gauge(
            "mistake_bound",
            "Most of the updates or mistakes of this epoch that the theorem allows, if its assumptions hold.",
            theorem=(),
            of=(),
        )
        self.bounded = add.gauge(
            "bounded_events",
            "What the theorem counts, in this epoch; above mistake_bound, its assumptions do not hold.",
            theorem=(),
            of=(),
        )
        self.margin_bound = add.late_gauge(
            "margin_upper_bound",
            "Upper bound on the margin with which any unit vector separates the model's updates.",
        )
        self.window_margin_bound = add.late_gauge(
            "margin_upper_bound_window", "The same for the newest 100 updates of each partition alone."
        )
        self.declared_margin = add.late_gauge(
            "declared_margin",
            "Margin of a unit separator as learner.gamma declares it; above margin_upper_bound, there is none.",
        )
        self.proved_changes = add.gauge(
            "proved_changes",
            "Changes of the stream that the partition's updates of this epoch prove, if separators have learner.gamma as margin.",
            partition=(),
        )
        self.restarts = add.late_gauge(
            "model_restarts",
            "Times in this epoch that the model started from zero, as learner.on_refuted says.",
        )
        self.window = add.late_gauge(
            "learner_window", "Most updates of each partition that count, as learner.window says."
        )
        self.counting = add.late_gauge(
            "counting_updates", "Updates of all partitions that count under learner.window."
        )
        self.version_space = add.late_gauge(
            "version_space_concepts", "Concepts that agree with every update; at 0 none of the class does."
        )

    def _declare_partitions(self) -> None:
        add = self.registry
        self.totals = {
            name: add.gauge("partition_" + name, text, partition=()) for name, text in _TOTALS.items()
        }
        self.confusion = ConfusionGauges(add, self.classes)
        self.tenants = TenantGauges(add)
        self.beside = BesideGauges(add)
        self.waiting_limit = add.gauge(
            "waiting_limit", "Most examples that may wait for their label in one partition."
        )
        self.parked_limit = add.gauge(
            "parked_limit", "Most labels that may wait for their example in one partition."
        )
        self.misplaced = add.gauge(
            "misplaced_labels",
            "Labels known to lie in other partitions than their examples; at least so many will not be applied.",
        )
        self.oldest = add.gauge(
            "pending_oldest_timestamp_seconds",
            "Stream time at which the oldest example still waiting for its label was predicted.",
            partition=(),
        )

    def _declare_checkpoints(self) -> None:
        add = self.registry
        self.checkpoints = add.counter(
            "checkpoints", "Checkpoints tried, by result.", result=get_args(CheckpointResult)
        )
        self.checkpoints_unreadable = add.counter(
            "checkpoint_read_failures",
            "Times that checkpoints could not be read at a start or takeover, and the log was read instead.",
        )
        self.checkpoint_duration = add.histogram(
            "checkpoint_duration_seconds", "Time to write one checkpoint durably.", DURATIONS_S
        )
        self.checkpoint_time = add.gauge(
            "checkpoint_last_success_timestamp_seconds", "Unix time of the last durable checkpoint."
        )
        self.checkpoint_size = add.gauge("checkpoint_size_bytes", "Size of the last durable checkpoint.")
        self.checkpoint_pending = add.gauge(
            "checkpoint_pending_updates", "Updates that no durable checkpoint holds yet."
        )


def build_version() -> str:
    """Of the installed package; `unknown` where it runs from a source tree."""
    try:
        return version("mistakebound")
    except PackageNotFoundError:
        return "unknown"
