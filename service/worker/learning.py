"""What the theorems say of the served model, told to the metrics every few seconds.

It costs a pass over the weights, so it is done while nothing waits for it, and never takes more than a small
part of the worker's time.
"""

import time
from collections.abc import Callable
from math import hypot, inf

from service.core.standing import certificate, concepts_left, standing, window_certificate
from service.core.state import State
from service.worker.metrics import Metrics

EVERY_S = 2.0
SHARE = 0.05
"""Most of the worker's time that this may take."""


class Learning:
    """One worker's view of its model. Call `measure` often; it mostly returns at once."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is monotonic, in s."""
        self._metrics, self._clock = metrics, clock
        self._next_s = -inf
        self._seen: object = None

    def measure(self, state: State) -> None:
        """Export bounds, certificate and size, if it is time and something changed."""
        began = self._clock()
        if began < self._next_s:
            return
        model = state.model
        tallies = [ledger.tallies.epoch for ledger in state.ledgers.values()]
        seen = (model.epoch, tuple(model.updates), [tally.examples["labelled"] for tally in tallies])
        if seen != self._seen:
            self._seen = seen
            nonzero = sum(value != 0.0 for value in model.learner.theta().values())
            self._metrics.model(nonzero, hypot(*model.learner.weights().values()))
            self._metrics.bounds(standing(model, tallies))
            self._metrics.margin(certificate(model), window_certificate(model), model.settings.learner.gamma)
            self._metrics.version_space(concepts_left(model.learner))
        took = self._clock() - began
        self._next_s = began + max(EVERY_S, took / SHARE)

    def forget(self) -> None:
        """Nothing is served: what was said of the model is taken back."""
        self._next_s, self._seen = -inf, None
        self._metrics.bounds(())
        self._metrics.margin(None, None, None)
        self._metrics.version_space(None)
