"""What the theorems say of the served model, and its largest weights, measured every few seconds.

Measuring costs a pass over the weights, so it is done between steps and never takes more than a small part
of the worker's time.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import hypot, inf, isfinite
from typing import Any

from mistakebound.core.checkpoint_content import settings_digest
from mistakebound.core.model.model import Model
from mistakebound.core.reporting.report import ModelSummary, summary
from mistakebound.core.reporting.status import Hypothesis, Weight
from mistakebound.core.step.state import State
from mistakebound.core.theorems.asked import ExpectedMistakes, expected_mistakes
from mistakebound.core.theorems.changes import ProvedChanges, proved_changes
from mistakebound.core.theorems.claims import (
    Bound,
    certificate,
    claims,
    concepts_left,
    why_none,
    window_certificate,
)
from mistakebound.settings import Settings
from mistakebound.worker.events import Event, Settled, StateDropped
from mistakebound.worker.metrics.metrics import Metrics

EVERY_S = 2.0
SHARE = 0.05
"""Most of the worker's time that this may take."""
TOP = 12
"""Weights kept by name."""
MOST_DIGESTED = 100_000
"""With more features no digest is made here: it sorts their names while the work waits."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A model as measured at one moment."""

    bounds: tuple[Bound, ...]
    margin_upper_bound: float | None
    window_margin_upper_bound: float | None
    summary: ModelSummary
    hypothesis: Hypothesis
    no_bound: str | None
    expected: ExpectedMistakes | None = None
    """Where labels are asked for."""
    proved_changes: ProvedChanges | None = None


class ModelInsight:
    """One worker's view of its model: an observer of the loop, for which most events cost nothing."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is monotonic, in s."""
        self._metrics, self._clock = metrics, clock
        self._next_s = -inf
        self._seen: object = None
        self._settings: Settings | None = None
        self.learned: Learned | None = None
        """As last measured; replaced, never changed."""

    def observe(self, event: Event) -> None:
        """Measure the state, if it is time; forget it when it is dropped."""
        match event:
            case Settled(held=held):
                self.measure(held.state)
            case StateDropped():
                self.forget()

    def measure(self, state: State) -> None:
        """Export bounds, certificate and size, if it is time and something changed."""
        began = self._clock()
        if began < self._next_s:
            return
        model = state.model
        tallies = [ledger.tallies.epoch for ledger in state.ledgers.values()]
        seen = (model.epoch, tuple(model.updates), [tally.judged for tally in tallies])
        if model.settings is not self._settings:
            self._settings = model.settings
            self._metrics.serves(model.settings.learner.kind, settings_digest(model.settings))
        if seen != self._seen:
            self._seen = seen
            weights = model.learner.weights()
            expected = expected_mistakes(model, tallies)
            self.learned = found = _measured(model, claims(model, tallies), weights, expected)
            self._metrics.expected_mistakes(None if expected is None else expected.value)
            self._metrics.model(found.summary.features or 0, hypot(*weights.values()))
            self._metrics.bounds(found.bounds)
            self._metrics.margin(
                found.margin_upper_bound, found.window_margin_upper_bound, model.settings.learner.gamma
            )
            proved = found.proved_changes
            if proved is None:
                self._metrics.proved_changes(())
            else:
                self._metrics.proved_changes(proved.by_partition, proved.restarts)
            self._metrics.version_space(concepts_left(model))
            if model.window is not None:
                self._metrics.window(model.window.size, sum(model.window.counting()))
        took = self._clock() - began
        self._next_s = began + max(EVERY_S, took / SHARE)

    def forget(self) -> None:
        """No model is served: take its figures off the page."""
        self._next_s, self._seen, self.learned = -inf, None, None
        self._metrics.bounds(())
        self._metrics.expected_mistakes(None)
        self._metrics.margin(None, None, None)
        self._metrics.proved_changes(())
        self._metrics.version_space(None)
        self._metrics.window(None, None)


def _measured(
    model: Model, bounds: tuple[Bound, ...], weights: Mapping[str, Any], expected: ExpectedMistakes | None
) -> Learned:
    return Learned(
        bounds,
        certificate(model),
        window_certificate(model),
        summary(model, MOST_DIGESTED),
        _hypothesis(model, weights),
        None if bounds else why_none(model),
        expected,
        proved_changes(model),
    )


def _hypothesis(model: Model, weights: Mapping[str, Any]) -> Hypothesis:
    kind, left = model.kind, concepts_left(model)
    if left is not None:  # `weights` spells out the first few
        return Hypothesis(kind.shows, left, tuple(Weight(name, 1.0) for name in weights), linear=False)
    if kind.scores_with is not None:
        weights = kind.scores_with(model.learner, sum(model.clock))
    if kind.starts_at is None:
        largest = nlargest(TOP, (item for item in weights.items() if item[1]), key=lambda item: abs(item[1]))
        return Hypothesis(
            kind.shows,
            len(weights),
            tuple(Weight(name, float(value)) for name, value in largest),
            linear=kind.sums,
        )
    theta = ((name, value) for name, value in model.learner.theta().items() if value and isfinite(value))
    moved = nlargest(TOP, theta, key=lambda item: abs(item[1]))
    top = tuple(Weight(name, float(weights[name]), value) for name, value in moved)
    return Hypothesis(kind.shows, len(weights), top, kind.starts_at(model.settings.learner))
