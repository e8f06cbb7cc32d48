"""When to write a checkpoint, and which one to start from."""

import time
from collections.abc import Iterator
from pathlib import Path

import structlog

from service.core import snapshot
from service.core.faults import BadSnapshot
from service.core.snapshot import Checkpoint
from service.log.protocol import Log, Refused
from service.settings import Settings
from service.worker import checkpoints
from service.worker.assignment import Held, epochs_of
from service.worker.checkpoints import CheckpointError, Checkpoints
from service.worker.metrics import Metrics

_log = structlog.get_logger(__name__)


class Checkpointing:
    """Writes after enough updates, or enough time with any step in it; at most one is lost, and only time.

    A folder that can no longer be written to is a warning and a metric, not the end of the work.
    """

    def __init__(self, log: Log, settings: Settings, slot: str, metrics: Metrics) -> None:
        """Raises CheckpointError when the folder cannot be written to at the start."""
        self._settings, self._metrics, self._log = settings, metrics, log
        self._store: Checkpoints | None = None
        self._current: checkpoints.Checkpoint | None = None
        self._updates = 0
        self._steps = 0
        self._failing = False
        self._written_s = time.monotonic()
        url = settings.checkpoint.url
        if url:
            self._store = Checkpoints(Path(url.removeprefix("file://")), settings.group, slot)
            self._store.prepare()

    def usable(self) -> Iterator[Checkpoint]:
        """Checkpoints of this log, newest first. The caller rejects one that it cannot use."""
        if self._store is None:
            return
        topics = self._topic_ids()
        for found in self._found(self._store):
            self._current = found
            try:
                checkpoint = snapshot.decode(found.payload)
                snapshot.check_belongs(checkpoint, self._settings.group, topics, self._log.partitions)
            except BadSnapshot as error:
                self.reject(str(error))
                continue
            self._metrics.restored(len(found.payload), found.written_at_s)
            yield checkpoint

    def _found(self, store: Checkpoints) -> Iterator[checkpoints.Checkpoint]:
        try:
            yield from store.valid()
        except CheckpointError as error:
            _log.warning("checkpoints_unreadable", error=str(error))

    def reject(self, reason: str) -> None:
        """Set the checkpoint that `usable` gave last aside; the log is the truth."""
        if self._store is not None and self._current is not None:
            self._store.set_aside(self._current.path, reason)

    def committed(self, held: Held, updates: int) -> None:
        """A transaction was committed, with so many updates."""
        self._updates += updates
        self._steps += 1
        self._metrics.checkpoint_pending(self._updates)
        self.consider(held)

    def consider(self, held: Held | None) -> None:
        """Write one if it is time."""
        rules = self._settings.checkpoint
        overdue = time.monotonic() - self._written_s >= rules.every.total_seconds()
        enough = self._updates >= rules.every_updates and not self._failing
        if enough or (self._steps > 0 and overdue):
            self.finish(held)

    def finish(self, held: Held | None) -> None:
        """Write one now, if anything happened since the last."""
        if self._store is None or held is None or self._steps == 0:
            return
        began = time.monotonic()
        content = snapshot.encode(self._checkpoint(held))
        try:
            self._store.write(content, {"updates": held.state.model.updates, "epoch": held.state.model.epoch})
        except CheckpointError as error:
            _log.warning("checkpoint_failed", error=str(error))
            self._metrics.checkpoint_failed()
            self._failing = True  # the next attempt waits its time, whatever the updates
        else:
            self._failing = False
            self._updates = self._steps = 0
            self._metrics.checkpointed(time.monotonic() - began, len(content), time.time())
            self._metrics.checkpoint_pending(0)
        self._written_s = time.monotonic()

    def _checkpoint(self, held: Held) -> Checkpoint:
        return Checkpoint(
            format=snapshot.FORMAT,
            group=self._settings.group,
            topics=self._topic_ids(),
            settings=snapshot.settings_digest(self._settings),
            epochs=epochs_of(held.fold),
            model=held.state.model.snapshot(),
            updates_next=held.fold.next_offsets,
            ledgers={p: snapshot.freeze(ledger) for p, ledger in held.state.ledgers.items()},
        )

    def _topic_ids(self) -> dict[str, str]:
        ids: dict[str, str] = {}
        for topic, description in self._log.describe().items():
            if description is None:
                raise Refused(f"topic {topic!r} is missing; create it with `mistakebound topics create`")
            ids[topic] = description.id
        return ids
