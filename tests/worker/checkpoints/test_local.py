"""Checkpoints in a folder: whole or absent after a crash at any point, a cut of the power, a full disk.

What holds on every store is in `test_stores.py`.
"""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.local import LocalCheckpointStore
from mistakebound.worker.checkpoints.store import CheckpointError

POINTS = [
    "open temporary",
    "lock",
    "write head",
    "write payload",
    "sync file",
    "link",
    "delete temporary",
    "sync folder",
    "delete old",
    "done",
]


def catalog_in(folder: Path, slot: str = "worker-0") -> Catalog:
    return Catalog(LocalCheckpointStore(folder), "demo.mistakebound", slot)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


CRASHING = """
import fcntl, os, pathlib, signal, sys
from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.local import LocalCheckpointStore

target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
catalog = Catalog(LocalCheckpointStore(folder), "demo.mistakebound", "worker-0")

def reached(point):
    if point == target:
        os.kill(os.getpid(), signal.SIGKILL)

class Dying:
    def __init__(self, file):
        self.file, self.writes = file, 0
    def write(self, data):
        reached("write head" if self.writes == 0 else "write payload")
        self.writes += 1
        half = len(data) // 2
        self.file.write(data[:half]); self.file.flush()
        self.file.write(data[half:])
    def __getattr__(self, name):
        return getattr(self.file, name)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()

begin, sync, link, unlink, lock = LocalCheckpointStore._begin, os.fsync, os.link, pathlib.Path.unlink, fcntl.flock
syncs = []

def dying_begin(self):
    path, file = begin(self)
    reached("open temporary")
    return path, Dying(file)

def dying_sync(number):
    sync(number)
    syncs.append(number)
    reached("sync file" if len(syncs) == 1 else "sync folder")

def dying_link(path, other):
    link(path, other)
    reached("link")

def dying_unlink(self, missing_ok=False):
    unlink(self, missing_ok)
    reached("delete temporary" if self.name.startswith(".") else "delete old")

def dying_lock(file, how):
    reached("lock")
    lock(file, how)

LocalCheckpointStore._begin = dying_begin
os.fsync, os.link, pathlib.Path.unlink, fcntl.flock = dying_sync, dying_link, dying_unlink, dying_lock
catalog.write(b"new" * 100_000, {})
reached("done")
raise SystemExit("never reached " + target)
"""


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_leaves_a_whole_checkpoint(tmp_path: Path, point: str) -> None:
    """Killed while writing, the old or the new one is there, whole; the next write clears what was left."""
    for payload in (b"oldest", b"old"):
        catalog_in(tmp_path).write(payload, {})
    died = subprocess.run(
        [sys.executable, "-c", CRASHING, point, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    newest = next(catalog_in(tmp_path).valid(), None)
    assert newest is not None
    named = POINTS.index(point) >= POINTS.index("link")
    assert newest.payload == (b"new" * 100_000 if named else b"old")
    assert not any(name.endswith(".rejected") for name in files(tmp_path))
    catalog_in(tmp_path).write(b"next", {})
    assert [each.payload for each in catalog_in(tmp_path).valid()] == [b"next", newest.payload]
    assert len(files(tmp_path)) == 2


def test_the_order_of_writing_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content is on disk before the name, and the name before old ones are deleted."""
    for payload in (b"oldest", b"old"):
        catalog_in(tmp_path).write(payload, {})
    order: list[str] = []
    sync, link, unlink = os.fsync, os.link, Path.unlink

    def noted_sync(number: int) -> None:
        order.append("sync folder" if os.fstat(number).st_mode & 0o040000 else "sync file")
        sync(number)

    def noted_link(path: Path, target: Path) -> None:
        order.append("link")
        link(path, target)

    def noted_unlink(self: Path, missing_ok: bool = False) -> None:
        order.append("delete temporary" if self.name.startswith(".") else "delete")
        unlink(self, missing_ok)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "link", noted_link)
    monkeypatch.setattr(Path, "unlink", noted_unlink)
    catalog_in(tmp_path).write(b"new", {})
    assert order == ["sync file", "link", "delete temporary", "sync folder", "delete"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_the_older_ones_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A full disk costs the new checkpoint only, and the error names the folder and the remedy."""
    catalog_in(tmp_path).write(b"old", {})
    before = files(tmp_path)

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError) as refused:
        catalog_in(tmp_path).write(b"new", {})
    assert str(tmp_path) in str(refused.value)
    assert os.strerror(code) in str(refused.value)
    assert "--set checkpoint.url" in str(refused.value)
    assert files(tmp_path) == before


def test_an_unusable_folder_is_refused_before_the_work_begins(tmp_path: Path) -> None:
    """A path below a file cannot become a folder; `prepare` and `write` say so, with the remedy."""
    (tmp_path / "file").write_bytes(b"")
    catalog = catalog_in(tmp_path / "file" / "checkpoints")
    for attempt in (catalog.prepare, lambda: catalog.write(b"x", {})):
        with pytest.raises(CheckpointError, match=r"cannot use the folder .*file/checkpoints.*writ.* to"):
            attempt()


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    """Missing permission is found by `prepare`, not by the first checkpoint an hour later."""
    me = os.geteuid()
    tmp_path.chmod(0o500)
    try:
        if me == 0:  # root may write anywhere: be nobody for a moment
            os.seteuid(65_534)
        with pytest.raises(CheckpointError, match="Permission denied"):
            catalog_in(tmp_path).prepare()
    finally:
        os.seteuid(me)
        tmp_path.chmod(0o700)


def test_preparing_leaves_nothing_and_clears_what_dead_writers_left(tmp_path: Path) -> None:
    """Temporary files of the dead go, whoever they were; a living writer's stays."""
    dead = tmp_path / ".demo.mistakebound_worker-9_0123.tmp"
    dead.write_bytes(b"half")
    path, file = LocalCheckpointStore(tmp_path)._begin()
    with file:
        catalog_in(tmp_path).prepare()
        assert files(tmp_path) == [path.name]
    catalog_in(tmp_path).prepare()
    assert files(tmp_path) == []


def test_a_file_system_without_links_is_used_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems have none: a rename puts the file in its place, and a taken name is seen."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", refuse)
    for payload in (b"first", b"second"):
        catalog_in(tmp_path).write(payload, {})
    assert [each.payload for each in catalog_in(tmp_path).valid()] == [b"second", b"first"]
    with pytest.raises(FileExistsError):
        LocalCheckpointStore(tmp_path).create(files(tmp_path)[0], b"", b"third")
    assert len(files(tmp_path)) == 2
