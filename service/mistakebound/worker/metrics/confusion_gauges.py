"""Judged predictions by (actual, predicted), for life, as gauges by partition."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import Gauge

from mistakebound.core.step.facts import ConfusionTotals
from mistakebound.worker.metrics.registry import Registry

_BY_CLASS = {
    "labelled": "Judged predictions whose label said the class, over the life of the partition.",
    "predicted": "Judged predictions of the class, over the life of the partition.",
    "correct": "Judged predictions of the class that were right, over the life of the partition.",
}

Series = tuple[Gauge, tuple[str, ...]]
"""A gauge, and the values of its labels."""


class ConfusionGauges:
    """Classes are label values where they are known and few; a class of an older epoch is `other`."""

    def __init__(self, add: Registry, classes: Collection[str]) -> None:
        self._classes = classes
        self._exported: dict[str, dict[Series, float]] = {}
        """By partition."""
        self._lines: dict[Series, Gauge] = {}
        """What is set of each series that is exported: to ask the library by labels costs three times as much."""
        self._compared = add.gauge(
            "partition_compared",
            "Judged predictions counted by (actual, predicted), over the life of the partition; "
            "fewer than labelled where an earlier version judged some.",
            partition=(),
        )
        self._mistakes = add.gauge(
            "partition_compared_mistakes",
            "Mistakes on these: of the model, of always the majority, of always the label before, "
            "and of the model as it was at each label.",
            partition=(),
            of=(),
        )
        self._costs = add.gauge(
            "partition_cost",
            "Cost of these mistakes as labels.costs says: of the model's, of always the majority's.",
            partition=(),
            of=(),
        )
        by_pair: dict[str, Sequence[str]] = {"partition": (), "actual": (), "predicted": ()}
        self._pairs = add.gauge(
            "partition_confusion",
            "Judged predictions by true and predicted class, over the life of the partition.",
            **by_pair,
        )
        self._majority_pairs = add.gauge(
            "partition_majority_confusion",
            "What always predicting the majority class so far would have come to on the same.",
            **by_pair,
        )
        self._by_class = {
            name: add.gauge("partition_class_" + name, text, **{"partition": (), "class": ()})
            for name, text in _BY_CLASS.items()
        }

    def export(self, partition: str, totals: ConfusionTotals) -> None:
        """Show these; a series that did not change is left alone."""
        found: dict[Series, float] = {(self._compared, (partition,)): totals.compared}
        found |= {(self._mistakes, (partition, whose)): count for whose, count in totals.mistakes.items()}
        found |= {(self._costs, (partition, whose)): cost for whose, cost in totals.costs.items()}
        if self._classes:
            self._add(found, partition, self._pairs, totals.pairs)
            self._add(found, partition, self._majority_pairs, totals.majority_pairs)
            for name, gauge in self._by_class.items():
                by_class: Mapping[str, int] = getattr(totals, name)
                self._add(found, partition, gauge, {(each,): count for each, count in by_class.items()})
        known = self._exported.get(partition, {})
        for (gauge, labels), count in found.items():
            if known.get((gauge, labels)) != count:
                line = self._lines.get((gauge, labels))
                if line is None:
                    line = self._lines[gauge, labels] = gauge.labels(*labels)
                line.set(count)
        self._take_off(known.keys() - found.keys())
        self._exported[partition] = found

    def _add(
        self,
        found: dict[Series, float],
        partition: str,
        gauge: Gauge,
        counts: Mapping[Any, int],
    ) -> None:
        for classes, count in counts.items():
            known = [each if each in self._classes else "other" for each in classes]
            series = gauge, (partition, *known)
            found[series] = found.get(series, 0) + count

    def remove(self, partition: str) -> None:
        """The partition is another worker's."""
        self._take_off(self._exported.pop(partition, {}))

    def _take_off(self, series: Iterable[Series]) -> None:
        for gauge, labels in series:
            del self._lines[gauge, labels]
            gauge.remove(*labels)
