"""The status of a worker that has no log: steps over rows, and the page's snapshots of them."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from mistakebound.core.model.fold import Fold
from mistakebound.core.replay.replay import Row, as_stream, fresh
from mistakebound.core.reporting.status import Status
from mistakebound.core.step.explain import MOST_TERMS
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.settings import Settings
from mistakebound.worker.health import Health
from mistakebound.worker.http.page import status_of
from mistakebound.worker.http.snapshot import Snapshots
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight
from tests.worker.support.events import committed, settled

READY = Health(True, True, "ok", "running", 0.0, ())


def told_of(settings: Settings, rows: Iterable[Row], *, explain: int = MOST_TERMS, delay: int = 0) -> Any:
    """The `Status` after all rows, on one partition; a step for each record. (Any: its parts are all there.)"""
    metrics = Metrics(["true", "false"], settings.learner.kind, "digest")
    times = itertools.count(1_000_000)  # each time that the snapshots ask
    insight = ModelInsight(metrics)
    snapshots = Snapshots(settings.learner.kind, lambda: insight.learned, lambda: next(times))
    state, merge = fresh(settings, 1), Merge((0,))
    for record in as_stream(rows, settings, 1, delay):
        merge.add((record,))
        done = step(state, merge, {("examples", 0), ("labels", 0)}, 1_000, explain)
        assert done is not None
        snapshots.observe(committed(done.facts))
    end = settled(state, Fold(settings, 1))
    insight.observe(end)
    snapshots.observe(end)
    return status_of(snapshots, settings, "slot", metrics, READY, snapshots.newest.counted_at)


def as_json(status: Status) -> Any:
    """As `/api/status` answers it."""
    return json.loads(msgspec.json.encode(status.as_dict()))
