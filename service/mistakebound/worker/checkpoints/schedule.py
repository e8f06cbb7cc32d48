"""When to write a checkpoint, and what is in it."""

import time
from concurrent.futures import Future, wait

import structlog

from mistakebound.core.checkpoint_content import (
    FORMAT,
    Checkpoint,
    encode_checkpoint,
    freeze,
    settings_digest,
)
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.open_store import open_store
from mistakebound.worker.checkpoints.restore import Restore, summary_of, topic_ids
from mistakebound.worker.checkpoints.store import CheckpointError
from mistakebound.worker.checkpoints.writer import Written, begin_write
from mistakebound.worker.events import Event, Settled, StepCommitted
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.takeover import WorkerState, epochs_of

FINISH_S = 4.0
"""How long a drain waits for the store; less than the time the drain has."""

_log = structlog.get_logger(__name__)


class CheckpointSchedule:
    """Writes after enough updates, or after enough time if any step was made in it.

    It observes the loop. The content is taken between two steps and written by another thread. A store that
    can no longer be written to causes a warning and a metric, and the work goes on: losing a checkpoint costs
    only time.
    """

    def __init__(self, log: Log, settings: Settings, slot: str, metrics: Metrics) -> None:
        """A store that cannot be used now, or is not set up, is the same at the start as at work: a restart must not turn
        a lost shortcut into an outage."""
        self._settings, self._metrics, self._log = settings, metrics, log
        self._catalog: Catalog | None = None
        self._writing: Future[Written] | None = None
        self._being_written = (0, 0)
        """Updates and steps that are new in the checkpoint being written."""
        self._updates = self._steps = 0
        self._failing = False
        self._began_s = time.monotonic()
        rules = settings.checkpoint
        if rules.url:
            store = open_store(rules.url, rules.timeout.total_seconds())
            self._catalog = Catalog(store, settings.group, slot)
            self._prepare(self._catalog)
        self.restore = Restore(log, settings, self._catalog, metrics)

    def _prepare(self, catalog: Catalog) -> None:
        try:
            catalog.prepare()
        except CheckpointError as error:
            _log.warning("checkpoint_failed", error=str(error))
            self._metrics.checkpoint_failed()
            self._failing = True

    def observe(self, event: Event) -> None:
        """Count what is new; begin to write, if it is time and no write is under way."""
        match event:
            case StepCommitted(facts=facts):
                self._updates += sum(facts.updates.values())
                self._steps += 1
                self._metrics.checkpoint_pending(self._updates)
            case Settled(held=held):
                self._collect(0.0)
                rules = self._settings.checkpoint
                overdue = time.monotonic() - self._began_s >= rules.every.total_seconds()
                enough = self._updates >= rules.every_updates and not self._failing
                if self._writing is None and (enough or (self._steps > 0 and overdue)):
                    self._begin(held)

    def finish(self, held: WorkerState | None) -> None:
        """Write a checkpoint, if any step was made since the last, and wait for it for at most 4 s."""
        deadline = time.monotonic() + FINISH_S
        self._collect(FINISH_S)
        if self._writing is None:
            self._begin(held)
            self._collect(max(0.0, deadline - time.monotonic()))
        if self._writing is not None:
            _log.warning("checkpoint_abandoned", after_s=FINISH_S, updates=self._updates)
            self._metrics.checkpoint_failed()

    def _begin(self, held: WorkerState | None) -> None:
        if self._catalog is None or held is None or self._steps == 0:
            return
        self._began_s = time.monotonic()
        self._being_written = self._updates, self._steps
        made = self._checkpoint(held)
        self._writing = begin_write(self._catalog, encode_checkpoint(made), summary_of(made))

    def _collect(self, wait_s: float) -> None:
        """Take note of how the write under way ended, if it ended within `wait_s`."""
        writing = self._writing
        if writing is None or not wait([writing], wait_s).done:
            return
        self._writing = None
        try:
            written = writing.result()
        except CheckpointError as error:
            _log.warning("checkpoint_failed", error=str(error))
            self._metrics.checkpoint_failed()
            self._failing = True  # the next attempt waits for `checkpoint.every`, whatever the updates
            return
        self._failing = False
        updates, steps = self._being_written
        self._updates, self._steps = self._updates - updates, self._steps - steps
        self._metrics.checkpointed(written.duration_s, written.bytes, written.at_s)
        self._metrics.checkpoint_pending(self._updates)

    def _checkpoint(self, held: WorkerState) -> Checkpoint:
        return Checkpoint(
            format=FORMAT,
            group=self._settings.group,
            topics=topic_ids(self._log),
            settings=settings_digest(held.state.model.settings),
            epochs=epochs_of(held.fold),
            model=held.state.model.snapshot(),
            updates_next=held.fold.next_offsets,
            ledgers={p: freeze(ledger) for p, ledger in held.state.ledgers.items()},
        )
