"""What a worker may start from instead of the log: its own checkpoints, and those of the group's other slots.

1. Nothing here is trusted: the log is read on from where a checkpoint ends, and a checkpoint that does not
   fit the log is not used.
2. For a partition that comes from another worker, its ledger is read from that worker's checkpoint, where
   both use one store.
3. A store that is away, slow or full of rubbish costs only time, within its timeouts.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import structlog

from mistakebound.core.checkpoint_content import Checkpoint, check_belongs, decode_checkpoint
from mistakebound.core.faults import BadSnapshot
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.catalog import Catalog, Head, StoredCheckpoint
from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError
from mistakebound.worker.checkpoints.store import CheckpointError
from mistakebound.worker.ledgers import Frozen, Start
from mistakebound.worker.metrics.metrics import Metrics

WORTH_RECORDS = 1_000
"""Up to this many records are read faster from the log than a checkpoint is from a store."""

_log = structlog.get_logger(__name__)


class Restore:
    """The checkpoints of this log's group, as one slot sees them. Without a store there are none."""

    def __init__(self, log: Log, settings: Settings, catalog: Catalog | None, metrics: Metrics) -> None:
        self._log, self._settings, self._catalog, self._metrics = log, settings, catalog, metrics
        self._current: StoredCheckpoint | None = None

    def usable(self) -> Iterator[Checkpoint]:
        """Whole checkpoints to start from. The caller rejects one that it cannot use, and takes the next.

        Another slot's comes first where it is ahead by more than a checkpoint may lag; then our own, the
        newest first.
        """
        if self._catalog is None:
            return
        began, topics = time.monotonic(), topic_ids(self._log)
        for found in self._read(self._catalog, began):
            self._current = found
            try:
                checkpoint = self._decode(found, topics)
            except BadSnapshot as error:
                self.reject(str(error))
                continue
            self._metrics.restored(len(found.payload), found.written_at_s)
            yield checkpoint

    def reject(self, reason: str) -> None:
        """Set aside the checkpoint that `usable` gave last, if it is our own; the log is the truth."""
        if self._catalog is not None and self._current is not None:
            self._catalog.set_aside(self._current.name, reason)

    def ledgers(self, starts: Mapping[int, Start]) -> dict[int, Frozen]:
        """Ledgers from any slot's checkpoint, where they save enough reading from `starts` on."""
        if self._catalog is None or not starts:
            return {}
        found: dict[int, Frozen] = {}
        try:
            chosen = _choose(self._heads(self._catalog, time.monotonic()), starts)
            topics = topic_ids(self._log) if chosen else {}
            for name, partitions in chosen.items():
                borrowed = self._borrow(self._catalog, name, topics)
                found |= {p: frozen for p, frozen in borrowed.items() if p in partitions}
        except CheckpointError as error:
            self._report_unreadable(error)
        return found

    def _read(self, catalog: Catalog, began: float) -> Iterator[StoredCheckpoint]:
        try:
            farther = self._farther(list(self._heads(catalog, began)))
            if farther is not None:
                try:
                    yield catalog.read(farther)
                except (InvalidCheckpointError, OSError) as error:
                    catalog.set_aside(farther, str(error))
            yield from catalog.valid()
        except CheckpointError as error:
            self._report_unreadable(error)

    def _heads(self, catalog: Catalog, began: float) -> Iterator[Head]:
        """As many heads as can be read in the time that one call may take."""
        for found in catalog.heads():
            yield found
            if time.monotonic() - began > self._settings.checkpoint.timeout.total_seconds():
                _log.warning("checkpoints_slow", read_until=found.name)
                return

    def _farther(self, heads: list[Head]) -> str | None:
        """The name of another slot's checkpoint whose model is ahead of our own by enough; None without one."""
        own = max((_version(each) for each in heads if each.own), default=(0, 0))
        others = [(*_version(each), each.name) for each in heads if not each.own]
        epoch, updates, name = max(others, default=(0, 0, ""))
        lag = self._settings.checkpoint.every_updates if own != (0, 0) else 0
        return name if epoch > own[0] or (epoch == own[0] and updates > own[1] + lag) else None

    def _borrow(self, catalog: Catalog, name: str, topics: Mapping[str, str]) -> dict[int, Frozen]:
        try:
            found = self._decode(catalog.read(name), topics)
        except (InvalidCheckpointError, BadSnapshot, OSError) as error:
            catalog.set_aside(name, str(error))
            return {}
        return {p: Frozen(found.model.epoch, ledger) for p, ledger in found.ledgers.items()}

    def _decode(self, found: StoredCheckpoint, topics: Mapping[str, str]) -> Checkpoint:
        """Raises BadSnapshot."""
        checkpoint = decode_checkpoint(found.payload)
        check_belongs(checkpoint, self._settings.group, topics, self._log.partitions)
        return checkpoint

    def _report_unreadable(self, error: CheckpointError) -> None:
        _log.warning("checkpoints_unreadable", error=str(error))
        self._metrics.checkpoints_unreadable()


def summary_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The part of a checkpoint that other workers read before they read all of it."""
    return {
        "epoch": checkpoint.model.epoch,
        "updates": checkpoint.model.updates,
        "ledgers": {str(p): [one.predictions_end, one.outcomes_end] for p, one in checkpoint.ledgers.items()},
    }


def topic_ids(log: Log) -> dict[str, str]:
    """Logical topic -> id. Raises Refused where one is missing."""
    ids: dict[str, str] = {}
    for topic, description in log.describe().items():
        if description is None:
            raise Refused(f"topic {topic!r} is missing; create it with `mistakebound topics create`")
        ids[topic] = description.id
    return ids


def _version(found: Head) -> tuple[int, int]:
    """(epoch, updates folded) according to the summary, which only decides what is read first."""
    match found.summary:
        case {"epoch": int(epoch), "updates": [*counts]} if all(isinstance(each, int) for each in counts):
            return epoch, sum(counts)
    return 0, 0


def _choose(heads: Iterator[Head], starts: Mapping[int, Start]) -> dict[str, set[int]]:
    """Checkpoint to read -> the partitions to take from it. Each partition comes from the one that saves most reading."""
    best: dict[int, tuple[int, str]] = {}
    for found in heads:
        ledgers: object = found.summary.get("ledgers")
        for p, start in starts.items():
            if not isinstance(ledgers, dict):
                break
            match ledgers.get(str(p)):
                case [int(predictions), int(outcomes)]:
                    spared = predictions - start.predictions + outcomes - start.outcomes
                    if spared > max(WORTH_RECORDS, best.get(p, (0, ""))[0]):
                        best[p] = spared, found.name
    chosen: dict[str, set[int]] = {}
    for p, (_, name) in best.items():
        chosen.setdefault(name, set()).add(p)
    return chosen
