"""What the loop tells Prometheus: a few calls per step with plain data, never one per record.

The names, labels and meanings are in `families.py`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from prometheus_client import Counter, Gauge
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

from mistakebound.core.reporting.status import CheckpointStatus
from mistakebound.core.step.facts import PartitionTotals, StepFacts, Stream
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker.health import State
from mistakebound.worker.metrics.definitions import Definitions, Level, RebuildReason, TransactionResult


class Metrics:
    """One worker's metrics. The loop's thread writes, HTTP threads read; every method is thread-safe."""

    def __init__(
        self,
        classes: Sequence[str],
        algorithm: str,
        config_digest: str,
        *,
        revision: str = "unknown",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`classes` as `facts.spelled` gives them, empty for an open set; `clock` is monotonic, in s."""
        self._clock = clock
        self._opened_s: float | None = None
        self._newest_ms: dict[Stream, int] = {}
        self._said: set[tuple[str, str]] = set()
        self._shown: set[Gauge] = set()
        self._of = Definitions(classes, algorithm, config_digest, revision, self._transaction_age_s)

    def state(self, name: State) -> None:
        """The worker enters a state."""
        self._of.state.state(name)

    def polled(self, at_s: float) -> None:
        """A poll was completed at this Unix time."""
        self._of.poll_time.set(at_s)

    def assigned(self, count: int) -> None:
        """The assignment changed; so many partitions are owned now."""
        self._of.rebalances.inc()
        for stream in get_args(Stream):
            self._of.assigned.labels(stream).set(count)

    def lag(self, records: Mapping[tuple[Stream, int], int]) -> None:
        """Records waiting on (stream, partition), of owned partitions."""
        for (stream, partition), count in records.items():
            self._of.lag.labels(stream, str(partition)).set(count)

    def stepped(self, facts: StepFacts, duration_s: float, committed_at_s: float) -> None:
        """A step was committed at this Unix time. Facts of a step that was given up never come here."""
        _add(self._of.consumed, facts.consumed)
        _add(self._of.rejected, facts.rejected)
        self._add_classes(self._of.predictions, facts.predicted)
        self._add_classes(self._of.evaluations, facts.evaluations)
        self._add_classes(self._of.mistakes, facts.mistakes)
        _add(self._of.baseline_mistakes, {"majority": facts.baseline_mistakes})
        _add(self._of.updates, facts.updates)
        _add(self._of.labels, facts.labels)
        _add(self._of.examples, facts.examples)
        self._of.label_delay.observe(facts.label_delays_seconds)
        self._of.margin.observe(facts.margins)
        self._of.latency.observe([committed_at_s - each / 1000 for each in facts.predicted_record_ms])
        for stream, newest_ms in facts.newest_record_ms.items():
            self._newest_ms[stream] = max(newest_ms, self._newest_ms.get(stream, 0))
            self._of.record_time.labels(stream).set(self._newest_ms[stream] / 1000)
        self._of.batch_duration.observe(duration_s)

    def partition(self, partition: int, totals: PartitionTotals) -> None:
        """An owned partition's durable totals."""
        for name, gauge in self._of.totals.items():
            gauge.labels(str(partition)).set(getattr(totals, name))
        if totals.oldest_waiting_ms is None:
            self._of.oldest.remove(str(partition))
        else:
            self._of.oldest.labels(str(partition)).set(totals.oldest_waiting_ms / 1000)

    def revoked(self, partition: int) -> None:
        """The partition moved away: its new owner exports it from now on."""
        for gauge in (*self._of.totals.values(), self._of.oldest):
            gauge.remove(str(partition))
        for stream in get_args(Stream):
            self._of.lag.remove(stream, str(partition))

    def opened(self) -> None:
        """A transaction was opened; `transaction` ends it."""
        self._opened_s = self._clock()

    def transaction(self, result: TransactionResult, duration_s: float) -> None:
        """The open transaction ended."""
        self._opened_s = None
        self._of.transactions.labels(result).inc()
        self._of.transaction_duration.observe(duration_s)

    def rebuilt(self, reason: RebuildReason) -> None:
        """A partition's state was rebuilt from the log."""
        self._of.rebuilds.labels(reason).inc()

    def limits(self, max_waiting: int, max_parked: int) -> None:
        """The limits that `partition_waiting` and `partition_parked` are read against."""
        self._of.waiting_limit.set(max_waiting)
        self._of.parked_limit.set(max_parked)

    def epoch(self, number: int) -> None:
        """The served model's epoch."""
        self._of.epoch.set(number)

    def followed(self, lag: int) -> None:
        """So many updates by other workers are committed and not yet folded here."""
        self._of.followed_lag.set(lag)

    def model(self, nonzero_weights: int, weight_norm: float) -> None:
        """The served model's size and norm. They cost a pass over the weights: now and then is enough."""
        self._of.nonzero.set(nonzero_weights)
        self._of.norm.set(weight_norm)

    def bounds(self, bounds: Sequence[Bound]) -> None:
        """All theorems that speak of the served model now, each beside the count it bounds."""
        said = {(bound.name, bound.of): bound for bound in bounds}
        for labels in self._said - said.keys():
            self._of.bound.remove(*labels)
            self._of.bounded.remove(*labels)
        for labels, bound in said.items():
            # Rounding aside, a bound that holds is never below its count: an alert compares the two.
            self._of.bound.labels(*labels).set(max(bound.value, bound.count) if bound.holds else bound.value)
            self._of.bounded.labels(*labels).set(bound.count)
        self._said = set(said)

    def margin(self, upper_bound: float | None, window: float | None, declared: float | None) -> None:
        """The certificate of the served model, that of its newest updates, and the margin declared.

        None where there is none.
        """
        self._show(self._of.margin_bound, upper_bound)
        self._show(self._of.window_margin_bound, window)
        self._show(self._of.declared_margin, declared)

    def version_space(self, concepts: int | None) -> None:
        """How many concepts agree with all updates; None for learners of another kind."""
        self._show(self._of.version_space, concepts)

    def window(self, size: int | None, counting: int | None) -> None:
        """The learner's window, and how many updates count; None where all do."""
        self._show(self._of.window, size)
        self._show(self._of.counting, counting)

    def _show(self, gauge: Gauge, value: float | None) -> None:
        """A gauge that is on the page only while it has a value."""
        if value is not None:
            gauge.set(value)
        if (value is not None) is not (gauge in self._shown):
            if value is None:
                self._shown.remove(gauge)
                self._of.registry.unregister(gauge)
            else:
                self._shown.add(gauge)
                self._of.registry.register(gauge)

    def checkpointed(self, duration_s: float, size_bytes: int, at_s: float) -> None:
        """A checkpoint became durable at this Unix time."""
        self._of.checkpoints.labels("success").inc()
        self._of.checkpoint_duration.observe(duration_s)
        self.restored(size_bytes, at_s)

    def checkpoint_failed(self) -> None:
        """A checkpoint could not be written."""
        self._of.checkpoints.labels("failure").inc()

    def checkpoints_unreadable(self) -> None:
        """The shelf could not be read, in time or at all; the log was."""
        self._of.checkpoints_unreadable.inc()

    def restored(self, size_bytes: int, at_s: float) -> None:
        """The worker started from a checkpoint that was written at this Unix time."""
        self._of.checkpoint_size.set(size_bytes)
        self._of.checkpoint_time.set(at_s)

    def checkpoint_pending(self, updates: int) -> None:
        """So many updates are in no durable checkpoint."""
        self._of.checkpoint_pending.set(updates)

    def behind(self) -> dict[int, dict[str, int]]:
        """Partition -> input -> records waiting on it, as last measured."""
        found: dict[int, dict[str, int]] = {}
        for sample in _samples(self._of.lag):
            found.setdefault(int(sample.labels["partition"]), {})[sample.labels["topic"]] = int(sample.value)
        return found

    def checkpoint(self) -> CheckpointStatus:
        """The checkpoints so far."""
        (at,), (size,), (pending,) = (
            [sample.value for sample in _samples(gauge)]
            for gauge in (self._of.checkpoint_time, self._of.checkpoint_size, self._of.checkpoint_pending)
        )
        failures = next(
            sample.value
            for sample in _samples(self._of.checkpoints)
            if sample.name.endswith("_total") and sample.labels["result"] == "failure"
        )
        return CheckpointStatus(at or None, int(size), int(pending), int(failures))

    def logged(self, level: str) -> None:
        """A message was logged; levels of libraries' own count as `debug`."""
        self._of.messages.labels(level if level in get_args(Level) else "debug").inc()

    def exposition(self) -> bytes:
        """The page in Prometheus text format."""
        return self.page("")[0]

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type: Prometheus text, or OpenMetrics where `accept` asks for it."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that the library cannot read
            encode, content_type = choose_encoder("")
        return encode(self._of.registry), content_type

    def _transaction_age_s(self) -> float:
        opened_s = self._opened_s
        return 0.0 if opened_s is None else max(0.0, self._clock() - opened_s)

    def _add_classes(self, counter: Counter, counts: Mapping[Any, int]) -> None:
        """The same by class. A class of an older epoch counts as `other`; without classes, only the sum."""
        if not self._of.classes:
            counter.inc(sum(counts.values()))
            return
        for key, count in counts.items():
            classes = (key,) if isinstance(key, str) else key
            known = [each if each in self._of.classes else "other" for each in classes]
            counter.labels(*known).inc(count)


def _samples(family: Counter | Gauge) -> Sequence[Sample]:
    return [sample for metric in family.collect() for sample in metric.samples]


def _add(counter: Counter, counts: Mapping[Any, int]) -> None:
    """Add counts by label value, or by tuple of label values."""
    for key, count in counts.items():
        if count:
            counter.labels(*((key,) if isinstance(key, str) else key)).inc(count)
