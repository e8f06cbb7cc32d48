"""What Prometheus sees of the loop: a few calls for each step with plain data, never one for a record.

The names, labels and meanings are in `definitions.py`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from prometheus_client import Counter, Gauge
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

from mistakebound.core.records import Stream
from mistakebound.core.reporting.status import CheckpointStatus
from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker import events
from mistakebound.worker.metrics.definitions import Definitions, Level


class Metrics:
    """One worker's metrics, an observer of its loop. HTTP threads read them; every method is thread-safe."""

    def __init__(
        self,
        classes: Sequence[str],
        algorithm: str,
        config_digest: str,
        *,
        revision: str = "unknown",
        prefix: str = "",
        worker: Mapping[str, str] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`classes` as `labels.spelled` gives them, empty for an open set; `prefix` is `log.prefix`; `worker` has its
        `group`, its `slot`, and the names of its `examples` and `labels`; `clock` is monotonic, in s.
        """
        self._clock = clock
        self._opened_s: float | None = None
        self._newest_ms: dict[Stream, int] = {}
        self._owned: set[int] = set()
        self._bounded: set[tuple[str, str]] = set()
        self._proved = 0
        self._of = Definitions(
            classes, algorithm, config_digest, revision, self._transaction_age_s, prefix, worker
        )

    def observe(self, event: events.Event) -> None:
        """Count it, or export what it says."""
        of = self._of
        match event:
            case events.PhaseEntered(phase):
                of.state.state(phase)
            case events.PollReturned(at_s):
                of.poll_time.set(at_s)
            case events.Assigned(epoch, totals):
                of.rebalances.inc()
                for stream in get_args(Stream):
                    of.assigned.labels(stream).set(len(totals))
                of.epoch.set(epoch)
                self._export(totals)
                self._owned = set(totals)
            case events.Revoked(partitions):
                self._remove(partitions)
            case events.StateDropped():
                self._remove(self._owned)
            case events.TransactionOpened():
                self._opened_s = self._clock()
            case events.TransactionEnded(result, duration_s):
                self._opened_s = None
                of.transactions.labels(result).inc()
                of.transaction_duration.observe(duration_s)
            case events.StepCommitted(facts, totals, duration_s, at_s):
                self._count(facts, at_s)
                self._export(totals)
                of.batch_duration.observe(duration_s)
            case events.LagMeasured(records, followed):
                for (stream, partition), count in records.items():
                    of.lag.labels(stream, str(partition)).set(count)
                of.followed_lag.set(followed)
            case events.Rebuilding() | events.LabelsMisplaced():
                self._note(event)

    def readiness(self, ready: Callable[[], bool]) -> None:
        """What to ask, at each scrape, whether the worker is ready."""
        self._of.ready.set_function(lambda: float(ready()))

    def limits(self, max_waiting: int, max_parked: int) -> None:
        """The limits to compare `partition_waiting` and `partition_parked` with."""
        self._of.waiting_limit.set(max_waiting)
        self._of.parked_limit.set(max_parked)

    def serves(self, algorithm: str, config_digest: str) -> None:
        """What the epoch holds: it may go on with an older default than the settings say."""
        self._of.model.info({"algorithm": algorithm, "config_digest": config_digest})

    def model(self, nonzero_weights: int, weight_norm: float) -> None:
        """The served model's size and norm. Each costs a pass over the weights, so now and then is enough."""
        self._of.nonzero.set(nonzero_weights)
        self._of.norm.set(weight_norm)

    def bounds(self, bounds: Sequence[Bound]) -> None:
        """All theorems that apply to the served model now, each with the count it bounds."""
        named = {(bound.name, bound.of): bound for bound in bounds}
        for labels in self._bounded - named.keys():
            self._of.bound.remove(*labels)
            self._of.bounded.remove(*labels)
        for labels, bound in named.items():
            # An alert compares the two: rounding must not put a bound that holds below its count.
            self._of.bound.labels(*labels).set(max(bound.value, bound.count) if bound.holds else bound.value)
            self._of.bounded.labels(*labels).set(bound.count)
        self._bounded = set(named)

    def margin(self, upper_bound: float | None, window: float | None, declared: float | None) -> None:
        """The certificate of the served model, that of its newest updates, and the declared margin.

        None where there is none.
        """
        self._of.registry.show(self._of.margin_bound, upper_bound)
        self._of.registry.show(self._of.window_margin_bound, window)
        self._of.registry.show(self._of.declared_margin, declared)

    def expected_mistakes(self, bound: float | None) -> None:
        """The most that are to be expected where labels are asked for; None where no theorem says so."""
        self._of.registry.show(self._of.expected, bound)

    def proved_changes(self, by_partition: Sequence[int], restarts: int | None = None) -> None:
        """Changes proved in this epoch, empty where none can be; how often the model restarted, None if it never does."""
        self._of.registry.show(self._of.restarts, restarts)
        for partition in range(len(by_partition), self._proved):
            self._of.proved_changes.remove(str(partition))
        for partition, count in enumerate(by_partition):
            self._of.proved_changes.labels(str(partition)).set(count)
        self._proved = len(by_partition)

    def version_space(self, concepts: int | None) -> None:
        """How many concepts agree with all updates; None for learners of another kind."""
        self._of.registry.show(self._of.version_space, concepts)

    def window(self, size: int | None, counting: int | None) -> None:
        """The learner's window, and how many updates count; None where all do."""
        self._of.registry.show(self._of.window, size)
        self._of.registry.show(self._of.counting, counting)

    def checkpointed(self, duration_s: float, size_bytes: int, at_s: float) -> None:
        """A checkpoint became durable at this Unix time."""
        self._of.checkpoints.labels("success").inc()
        self._of.checkpoint_duration.observe(duration_s)
        self.restored(size_bytes, at_s)

    def checkpoint_failed(self) -> None:
        """A checkpoint could not be written."""
        self._of.checkpoints.labels("failure").inc()

    def checkpoints_unreadable(self) -> None:
        """The store could not be read, in time or at all; the log was read instead."""
        self._of.checkpoints_unreadable.inc()

    def restored(self, size_bytes: int, at_s: float) -> None:
        """The worker started from a checkpoint that was written at this Unix time."""
        self._of.checkpoint_size.set(size_bytes)
        self._of.checkpoint_time.set(at_s)

    def checkpoint_pending(self, updates: int) -> None:
        """This many updates are not in any durable checkpoint yet."""
        self._of.checkpoint_pending.set(updates)

    def behind(self) -> dict[int, dict[str, int]]:
        """Partition -> input -> records waiting on it, as last measured."""
        found: dict[int, dict[str, int]] = {}
        for sample in _samples(self._of.lag):
            found.setdefault(int(sample.labels["partition"]), {})[sample.labels["topic"]] = int(sample.value)
        return found

    def checkpoint(self) -> CheckpointStatus:
        """The checkpoints so far."""
        of = self._of
        failed = of.checkpoints.labels("failure")
        at, size, pending, failures = (
            _samples(each)[0].value
            for each in (of.checkpoint_time, of.checkpoint_size, of.checkpoint_pending, failed)
        )
        return CheckpointStatus(at or None, int(size), int(pending), int(failures))

    def logged(self, level: str) -> None:
        """A message was logged; levels that only a library knows count as `debug`."""
        self._of.messages.labels(level if level in get_args(Level) else "debug").inc()

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type: Prometheus text, or OpenMetrics where `accept` asks for it."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that the library cannot read
            encode, content_type = choose_encoder("")
        return encode(self._of.registry), content_type

    def _transaction_age_s(self) -> float:
        opened_s = self._opened_s
        return 0.0 if opened_s is None else max(0.0, self._clock() - opened_s)

    def _note(self, trouble: events.Rebuilding | events.LabelsMisplaced) -> None:
        match trouble:
            case events.Rebuilding(reason):
                self._of.rebuilds.labels(reason).inc()
            case events.LabelsMisplaced(labels):
                self._of.misplaced.set(labels)

    def _count(self, facts: StepFacts, committed_at_s: float) -> None:
        _add(self._of.consumed, facts.consumed)
        _add(self._of.rejected, facts.rejected)
        _add(self._of.lost, facts.lost)
        _add(self._of.asked, {"true" if asked else "false": count for asked, count in facts.asked.items()})
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

    def _export(self, totals: Mapping[int, PartitionTotals]) -> None:
        """Durable totals of owned partitions."""
        for partition, one in totals.items():
            for name, gauge in self._of.totals.items():
                gauge.labels(str(partition)).set(getattr(one, name))
            if one.oldest_waiting_ms is None:
                self._of.oldest.remove(str(partition))
            else:
                self._of.oldest.labels(str(partition)).set(one.oldest_waiting_ms / 1000)
            self._of.beside.export(str(partition), one)
            self._of.confusion.export(str(partition), one.confusion)
            self._of.tenants.export(str(partition), one.tenants)

    def _remove(self, partitions: Iterable[int]) -> None:
        """The partitions are no longer ours: their new owners export them from now on."""
        for partition in map(str, partitions):
            for gauge in (*self._of.totals.values(), self._of.oldest):
                gauge.remove(partition)
            for stream in get_args(Stream):
                self._of.lag.remove(stream, partition)
            self._of.beside.remove(partition)
            self._of.confusion.remove(partition)
            self._of.tenants.remove(partition)

    def _add_classes(self, counter: Counter, counts: Mapping[Any, int]) -> None:
        """Add counts by class. A class of an older epoch counts as `other`; without classes, add only the sum."""
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
