"""The checkpoints of a group in a store: their names, which are kept, which are read.

1. The two newest checkpoints of a slot are kept; the newest valid one is used.
2. A checkpoint that is truncated, corrupt or foreign is set aside as `*.rejected` with a warning, and the
   next is tried. Losing all of them loses no result: a checkpoint only saves folding the log.
3. Workers of other groups and slots may share the store. A worker that takes a partition over may read the
   checkpoints of its group's other slots, but never deletes or renames them.
4. Two processes that write as one slot, such as a predecessor that woke up, never replace each other's
   checkpoints.

Not guaranteed: protection against someone who may write to the store. (Nothing is ever unpickled.)
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

import structlog

from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError, head, parse, summary_of
from mistakebound.worker.checkpoints.store import REJECTED, SUFFIX, CheckpointError, CheckpointStore

KEPT = 2
HEAD_BYTES = 262_144
"""How much of a checkpoint is read to see what it covers: a thousand partitions' summary takes 40 kB."""
ATTEMPTS = 20
"""Numbers tried. A number that is taken means that another writer of the slot has just written a checkpoint."""

_log = structlog.get_logger(__name__)


class Name(NamedTuple):
    """What a checkpoint's name says: who wrote it, and its number among that writer's checkpoints."""

    owner: str
    sequence: int
    text: str


class StoredCheckpoint(NamedTuple):
    """One valid checkpoint, as read."""

    name: str
    payload: bytes
    written_at_s: float


class Head(NamedTuple):
    """The beginning of a checkpoint: what its writer says about it."""

    name: str
    own: bool
    summary: Mapping[str, Any]


class Catalog:
    """The checkpoints of one group, written and set aside as one of its slots."""

    def __init__(self, store: CheckpointStore, group: str, slot: str) -> None:
        self.store = store
        self._group = _clean(group) + "_"
        self._own = f"{self._group}{_clean(slot)}_"

    def prepare(self) -> None:
        """Make the store ready. Raises CheckpointError."""
        self.store.prepare()
        self.store.sweep()

    def write(self, payload: bytes, summary: Mapping[str, Any]) -> str:
        """Write the next checkpoint and return its name; durable, and the newest, when this returns.

        Raises CheckpointError: older checkpoints are as they were. TypeError if `summary` is not JSON.
        """
        name = self._create(head(payload, summary), payload)
        # The new one is safe; a leftover costs only space, until the next time.
        with suppress(CheckpointError):
            for old in self.names()[KEPT:]:
                self.store.delete(old)
            self.store.sweep()
        return name

    def names(self) -> list[str]:
        """This slot's checkpoints, newest first, valid or not."""
        return [each.text for each in self._mine()]

    def read(self, name: str) -> StoredCheckpoint:
        """Raises InvalidCheckpointError, FileNotFoundError, OSError, CheckpointError."""
        content, written_at_s = self.store.read(name)
        return StoredCheckpoint(name, parse(content), written_at_s)

    def valid(self) -> Iterator[StoredCheckpoint]:
        """This slot's valid checkpoints, newest first; those that are not valid are set aside on the way.

        A caller that cannot use one calls `set_aside` and takes the next. Raises CheckpointError
        when the store cannot be read.
        """
        for name in self.names():
            try:
                checkpoint = self.read(name)
            except FileNotFoundError:  # deleted by a newer writer of the slot
                continue
            except (InvalidCheckpointError, OSError) as error:
                self.set_aside(name, str(error))
            else:
                yield checkpoint

    def heads(self) -> Iterator[Head]:
        """The newest checkpoint with a whole head of each slot of the group. Raises CheckpointError."""
        done: set[str] = set()
        for owner, _, name in self._named():
            if owner not in done:
                with suppress(InvalidCheckpointError, OSError):
                    summary = summary_of(self.store.beginning(name, HEAD_BYTES))
                    done.add(owner)
                    yield Head(name, owner == self._own, summary)

    def set_aside(self, name: str, reason: str) -> None:
        """Rename a checkpoint that cannot be used to `*.rejected`, so that it is kept but not tried again.

        Another slot's checkpoint stays where it is: only its own writer may rename it.
        """
        path, aside = self.store.where(name), name + REJECTED
        if not name.startswith(self._own):
            _log.warning("checkpoint_passed_over", path=path, reason=reason)
            return
        try:
            self.store.rename(name, aside)
        except (OSError, CheckpointError) as error:
            _log.warning("checkpoint_rejected", path=path, reason=reason, left_in_place=str(error))
        else:
            _log.warning("checkpoint_rejected", path=path, reason=reason, moved_to=self.store.where(aside))

    def _named(self) -> list[Name]:
        """The group's, each slot's newest first."""
        texts = (text for text in self.store.names() if text.startswith(self._group))
        found = [name for text in texts if (name := _parts(text)) is not None]
        return sorted(found, key=lambda name: (name.owner, -name.sequence))

    def _create(self, beginning: bytes, payload: bytes) -> str:
        for _ in range(ATTEMPTS):
            newest = next((each.sequence for each in self._mine()), 0)
            name = f"{self._own}{newest + 1:012d}{SUFFIX}"
            with suppress(FileExistsError):
                self.store.create(name, beginning, payload)
                return name
        raise CheckpointError(
            f"checkpoint.url: {ATTEMPTS} numbers in {self.store.where()} were taken while this worker wrote; "
            "give each worker a worker.slot of its own"
        )

    def _mine(self) -> list[Name]:
        return [each for each in self._named() if each.owner == self._own]


def _parts(text: str) -> Name | None:
    """None for a name that no worker would give."""
    owner, _, number = text.removesuffix(SUFFIX).rpartition("_")
    if number.isascii() and number.isdigit() and owner.count("_") == 1:
        return Name(owner + "_", int(number), text)
    return None


def _clean(name: str) -> str:
    """A name as part of a file name: different names stay different, and none contains the separator."""
    quoted = quote(name, safe="").replace("_", "%5F").replace("~", "%7E")
    if len(quoted) <= 80:
        return quoted
    return f"{quoted[:60]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
