"""A registry of the worker's own: short ways to declare metrics, and a histogram that takes batches."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

PREFIX = "mistakebound_"

_Family = TypeVar("_Family", Counter, Gauge)


class Registry(CollectorRegistry):
    """Metrics named with the prefix, without `_created` series (the library can switch those off only for the whole
    process).

    A label is given as `name=values`; each combination of values is exported from the start, at zero. A
    label without values gets them later.
    """

    def __init__(self, on_every_series: Mapping[str, str] = MappingProxyType({})) -> None:
        """`on_every_series` are labels with their values; an empty value is none, as it is to Prometheus."""
        super().__init__()
        self._constant = {name: value for name, value in on_every_series.items() if value}
        self._shown: set[Gauge] = set()

    def counter(self, name: str, text: str, **labels: Sequence[str]) -> Counter:
        """Counts since the process began; `_total` is added to the name."""
        return _start_at_zero(Counter(PREFIX + name, text, labels, registry=self), labels)

    def gauge(self, name: str, text: str, **labels: Sequence[str]) -> Gauge:
        """A value that goes up and down."""
        return _start_at_zero(Gauge(PREFIX + name, text, labels, registry=self), labels)

    def late_gauge(self, name: str, text: str) -> Gauge:
        """Exported only while `show` gives it a value: a bound of 0 would claim something false."""
        return Gauge(PREFIX + name, text, registry=None)

    def show(self, late_gauge: Gauge, value: float | None) -> None:
        """Export this value of a late gauge; None takes it off the page."""
        if value is not None:
            late_gauge.set(value)
        if (value is not None) is not (late_gauge in self._shown):
            self._shown ^= {late_gauge}
            (self.unregister if value is None else self.register)(late_gauge)

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
            family.samples = [
                each._replace(labels=self._constant | each.labels) if self._constant else each
                for each in family.samples
                if not each.name.endswith("_created")
            ]
            yield family


def _start_at_zero(family: _Family, labels: dict[str, Sequence[str]]) -> _Family:
    if labels:
        for combination in product(*labels.values()):
            family.labels(*combination)
    return family


MOST_SUMMED = 1e290


class BatchHistogram(Collector):
    """Counts of values at or below each of `bounds` (ascending, finite), their number and their sum.

    `prometheus_client.Histogram` takes a lock for each value; this takes one for a whole step.
    Values below zero count as zero: the clocks of two machines may disagree, and a falling sum would
    look like a restart. Infinities and NaN count above every bound and add nothing to the sum, and no value adds more
    than 1e290, so that it stays finite.
    """

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self._name, self._text = name, text
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
        total = float(np.minimum(clipped[np.isfinite(clipped)], MOST_SUMMED).sum())
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
