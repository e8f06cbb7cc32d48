"""Checkpoint files in a local folder. What is in them is `service/core/snapshot.py`'s affair.

1. A file under its final name is whole: temporary file, fsync, rename, fsync of the folder.
2. The two newest of a slot are kept; the newest valid one wins.
3. What is truncated, corrupt or foreign is set aside as `*.rejected` with a warning, and the next is tried.
   Losing all of them loses nothing: a checkpoint is only a shortcut for folding the log.
4. Workers of other groups and slots may share the folder; their files are left alone.

Not guaranteed: protection against someone who may write to the folder. (Nothing is ever unpickled.)

A file is a line `mistakebound-checkpoint 1`, a line of JSON (`sha256`, `length` in bytes, `summary`), then
the payload. POSIX only: a lock on the temporary file tells a live writer from a dead one.
"""

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import structlog

MAGIC = b"mistakebound-checkpoint 1\n"
KEPT = 2
MOST_HEADER_BYTES = 1_048_576
SUFFIX, TEMPORARY, REJECTED = ".checkpoint", ".tmp", ".rejected"

_log = structlog.get_logger(__name__)


class CheckpointError(Exception):
    """The folder cannot be used. The text names it and the remedy."""


class InvalidCheckpointError(Exception):
    """A file is no whole checkpoint. The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One valid checkpoint, as read."""

    path: Path
    payload: bytes
    summary: Mapping[str, Any]
    """What the writer wanted to be readable without the payload."""
    written_at_s: float
    """The file's modification time, Unix."""


def read(path: Path) -> Checkpoint:
    """The checkpoint at `path`. Raises InvalidCheckpointError, or OSError when it cannot be read."""
    with path.open("rb") as file:
        if file.readline(len(MAGIC)) != MAGIC:
            raise InvalidCheckpointError(f"it does not begin with {MAGIC.decode().strip()!r}")
        header = _header(file)
        payload = file.read()
        written_at_s = os.fstat(file.fileno()).st_mtime
    if len(payload) != header["length"]:
        raise InvalidCheckpointError(
            f"its payload has {len(payload)} bytes where its header says {header['length']}"
        )
    if hashlib.sha256(payload).hexdigest() != header["sha256"]:
        raise InvalidCheckpointError("its payload does not have the SHA-256 that its header says")
    return Checkpoint(path, payload, header["summary"], written_at_s)


def _header(file: BinaryIO) -> dict[str, Any]:
    line = file.readline(MOST_HEADER_BYTES)
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    match header:
        case {"length": int(), "sha256": str(), "summary": dict()} if line.endswith(b"\n"):
            return dict(header)
    raise InvalidCheckpointError("its second line is not a JSON object with length, sha256 and summary")


def listed(folder: Path) -> list[Path]:
    """Every checkpoint in the folder, of all groups and slots, by name; empty where there is no folder.

    Raises CheckpointError when the folder cannot be read.
    """
    try:
        return sorted(folder.glob("*" + SUFFIX))
    except OSError as error:
        raise _unusable(folder, error) from error


class Checkpoints:
    """The checkpoints of one group's slot in a folder."""

    def __init__(self, folder: Path, group: str, slot: str) -> None:
        self._folder = folder
        self._prefix = f"{_clean(group)}_{_clean(slot)}_"

    def prepare(self) -> None:
        """Make the folder if it is missing and try to write to it. Raises CheckpointError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary, file = self._begin()
            with file:
                temporary.unlink()
            self._sweep()
        except OSError as error:
            raise _unusable(self._folder, error) from error

    def write(self, payload: bytes, summary: Mapping[str, Any]) -> Path:
        """Write the next checkpoint; durable, and the only newest, when this returns.

        Raises CheckpointError: older checkpoints are as they were. TypeError if `summary` is not JSON.
        """
        header = {"sha256": hashlib.sha256(payload).hexdigest(), "length": len(payload), "summary": summary}
        head = MAGIC + json.dumps(header, sort_keys=True, allow_nan=False).encode() + b"\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._write(head, payload)
        except OSError as error:
            raise _unusable(self._folder, error) from error
        with suppress(OSError):  # the new one is safe; a leftover costs space only, and is tried again
            self._sweep()
        return path

    def paths(self) -> list[Path]:
        """This slot's checkpoints, newest first, valid or not."""
        found = []
        for path in listed(self._folder):
            sequence = path.name.removeprefix(self._prefix).removesuffix(SUFFIX)
            if path.name.startswith(self._prefix) and sequence.isascii() and sequence.isdigit():
                found.append((int(sequence), path))
        return [path for _, path in sorted(found, reverse=True)]

    def valid(self) -> Iterator[Checkpoint]:
        """The valid ones, newest first; what is not valid is set aside on the way.

        A caller that cannot use what it gets calls `set_aside` and takes the next.
        """
        for path in self.paths():
            try:
                checkpoint = read(path)
            except FileNotFoundError:  # deleted by a newer writer of the slot
                continue
            except (InvalidCheckpointError, OSError) as error:
                self.set_aside(path, str(error))
            else:
                yield checkpoint

    def newest_valid(self) -> Checkpoint | None:
        """The newest valid one; None without any. Raises CheckpointError when the folder is unreadable."""
        return next(self.valid(), None)

    def set_aside(self, path: Path, reason: str) -> None:
        """Rename a checkpoint that cannot be used to `*.rejected`, so that it is kept but not tried again."""
        aside = path.with_name(path.name + REJECTED)
        try:
            path.replace(aside)
        except OSError as error:
            _log.warning("checkpoint_rejected", path=str(path), reason=reason, left_in_place=str(error))
        else:
            _log.warning("checkpoint_rejected", path=str(path), reason=reason, moved_to=str(aside))

    def _write(self, head: bytes, payload: bytes) -> Path:
        newest = self.paths()[:1]
        sequence = 1 + max(
            (int(each.stem.removeprefix(self._prefix)) for each in newest),
            default=0,
        )
        path = self._folder / f"{self._prefix}{sequence:012d}{SUFFIX}"
        temporary, file = self._begin()
        try:
            with file:
                file.write(head)
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._sync_folder()
        return path

    def _begin(self) -> tuple[Path, BinaryIO]:
        """A new temporary file, locked for as long as it is open."""
        while True:
            path = self._folder / f".{self._prefix}{uuid.uuid4().hex}{TEMPORARY}"
            file = path.open("xb")
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():  # else another writer took it for a dead one's before it was locked
                return path, file
            file.close()

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _sweep(self) -> None:
        """Delete what is older than the two newest, and temporary files of writers that died."""
        for path in self.paths()[KEPT:]:
            path.unlink(missing_ok=True)
        for path in self._folder.glob(f".*{TEMPORARY}"):
            with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)


def _clean(name: str) -> str:
    """A name as part of a file name: no two names give the same, none holds the separator."""
    quoted = quote(name, safe="").replace("_", "%5F").replace("~", "%7E")
    if len(quoted) <= 80:
        return quoted
    return f"{quoted[:60]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _unusable(folder: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"checkpoint.url: cannot use the folder {folder}: {error.strerror or error}; "
        "make it a folder that this user may write to, with room for two checkpoints, "
        "or set another with --set checkpoint.url=FOLDER (empty for none)"
    )
