"""The status of a worker that has no log: steps over rows, shown on a board."""

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
from mistakebound.worker.http.snapshot import Board
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight

READY = Health(True, True, "ok", "running", 0.0, ())


def told_of(settings: Settings, rows: Iterable[Row], *, explain: int = MOST_TERMS, delay: int = 0) -> Any:
    """The `Status` after all rows, on one partition; a step for each record. (Any: its parts are all there.)"""
    metrics = Metrics(["true", "false"], settings.learner.kind, "digest")
    times = itertools.count(1_000_000)  # each time that the board asks
    board = Board(settings.learner.kind, lambda: next(times))
    state, merge = fresh(settings, 1), Merge((0,))
    for record in as_stream(rows, settings, 1, delay):
        merge.add((record,))
        done = step(state, merge, {("examples", 0), ("labels", 0)}, 1_000, explain)
        assert done is not None
        board.stepped(done.facts)
    learning = ModelInsight(metrics)
    learning.measure(state)
    board.show(state, Fold(settings, 1), learning.learned)
    return status_of(board, settings, "slot", metrics, READY, board.shown.counted_at)


def as_json(status: Status) -> Any:
    """As `/api/status` answers it."""
    return json.loads(msgspec.json.encode(status))
