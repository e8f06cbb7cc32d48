"""A registry of the worker's own: short ways to declare metrics, and a histogram that takes batches."""

import threading
from collections.abc import Iterator, Sequence

import numpy as np
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

PREFIX = "mistakebound_"


class Registry(CollectorRegistry):
    """Metrics named with the prefix, without `_created` series (the library can switch those off only for the whole
    process).

    A label is given as `name=values`; each combination of values is exported from the start, at zero. A
    label without values gets them later.
    """

    def counter(self, name: str, text: str, **labels: Sequence[str]) -> Counter:
        """Counts since the process began; `_total` is added to the name."""
        family = Counter(PREFIX + name, text, labels, registry=self)
        _start_at_zero(family, labels)
        return family

    def gauge(self, name: str, text: str, **labels: Sequence[str]) -> Gauge:
        """A value that goes up and down."""
        family = Gauge(PREFIX + name, text, labels, registry=self)
        _start_at_zero(family, labels)
        return family

    def histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        """For values that come one at a time."""
        return Histogram(PREFIX + name, text, buckets=bounds, registry=self)

    def batches(self, name: str, text: str, bounds: Sequence[float]) -> "BatchHistogram":
        """For values that come thousands at a time."""
        family = BatchHistogram(PREFIX + name, text, bounds)
        self.register(family)
        return family

    def collect(self) -> Iterator[Metric]:
        """All metrics, as a scrape asks for them."""
        for family in super().collect():
            family.samples = [each for each in family.samples if not each.name.endswith("_created")]
            yield family


def _start_at_zero(family: Counter | Gauge, labels: dict[str, Sequence[str]]) -> None:
    combinations: list[tuple[str, ...]] = [()]
    for values in labels.values():
        combinations = [(*each, value) for each in combinations for value in values]
    if labels:
        for combination in combinations:
            family.labels(*combination)


class BatchHistogram(Collector):
    """Counts of values at or below each of `bounds` (ascending, finite), their number and their sum.

    `prometheus_client.Histogram` takes a lock for each value; this takes one for a whole step.
    Values below zero count as zero: the clocks of two machines may disagree, and a falling sum would
    look like a restart. Infinities and NaN count above every bound and add nothing to the sum.
    """

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._bounds = np.asarray(bounds, dtype=np.float64)
        self._counts = np.zeros(len(bounds) + 1, dtype=np.int64)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, values: Sequence[float]) -> None:
        """Add these values."""
        if not len(values):
            return
        clipped = np.maximum(np.asarray(values, dtype=np.float64), 0.0)  # NaN stays NaN
        buckets = np.searchsorted(self._bounds, clipped, side="left")
        counts = np.bincount(buckets, minlength=len(self._counts))
        total = float(clipped[np.isfinite(clipped)].sum())
        with self._lock:
            self._counts += counts
            self._sum += total

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family with cumulative counts."""
        with self._lock:
            below = np.cumsum(self._counts).tolist()
            total = self._sum
        names = [*(repr(bound) for bound in self._bounds.tolist()), "+Inf"]
        yield HistogramMetricFamily(
            self._name, self._text, buckets=list(zip(names, below, strict=True)), sum_value=total
        )
