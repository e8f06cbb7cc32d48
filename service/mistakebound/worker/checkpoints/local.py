"""Checkpoints in a folder, local or shared by several machines.

A file under its final name is whole: it is written as a temporary file, synced, linked, and the folder is
synced. POSIX only: a lock on the temporary file tells a live writer from a dead one.
"""

import errno
import fcntl
import os
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mistakebound.worker.checkpoints.store import SUFFIX, CheckpointError

TEMPORARY = ".tmp"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class LocalCheckpointStore:
    """A `CheckpointStore`. The folder is made when it is first needed."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def prepare(self) -> None:
        with self._blamed():
            self._path.mkdir(parents=True, exist_ok=True)
            temporary, file = self._begin()
            with file:
                temporary.unlink()

    probe = prepare

    def names(self) -> list[str]:
        with self._blamed():
            return sorted(path.name for path in self._path.glob("*" + SUFFIX))

    def beginning(self, name: str, length: int) -> bytes:
        with (self._path / name).open("rb") as file:
            return file.read(length)

    def read(self, name: str) -> tuple[bytes, float]:
        with (self._path / name).open("rb") as file:
            return file.read(), os.fstat(file.fileno()).st_mtime

    def size(self, name: str) -> int:
        return (self._path / name).stat().st_size

    def create(self, name: str, head: bytes, payload: bytes) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._create(self._path / name, head, payload)
        except FileExistsError:
            if not self._path.is_dir():
                raise self._unusable(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))) from None
            raise
        except OSError as error:
            raise self._unusable(error) from error

    def delete(self, name: str) -> None:
        with self._blamed():
            (self._path / name).unlink(missing_ok=True)

    def rename(self, name: str, to: str) -> None:
        (self._path / name).replace(self._path / to)

    def sweep(self) -> None:
        with self._blamed():
            for path in self._path.glob(f".*{TEMPORARY}"):
                with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink(missing_ok=True)

    def where(self, name: str = "") -> str:
        return str(self._path / name)

    def _create(self, path: Path, head: bytes, payload: bytes) -> None:
        temporary, file = self._begin()
        try:
            with file:
                file.write(head)
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
                _name(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _begin(self) -> tuple[Path, BinaryIO]:
        """A new temporary file, locked for as long as it is open."""
        while True:
            path = self._path / f".{uuid.uuid4().hex}{TEMPORARY}"
            file = path.open("xb")
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():  # else another writer took it for a dead writer's before we locked it
                return path, file
            file.close()

    @contextmanager
    def _blamed(self) -> Generator[None]:
        """Turn an OSError into one that names the folder and the remedy."""
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"checkpoint.url: cannot use the folder {self._path}: {error.strerror or error}; "
            "make it a folder that this user may write to, with room for two checkpoints, "
            "or set another with --set checkpoint.url=FOLDER (empty for none)"
        )


def _name(temporary: Path, path: Path) -> None:
    """Give a file its final name, unless that is taken: a link never replaces a file, a rename would."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():  # without links two writers may still race here; each file is whole
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.replace(path)
