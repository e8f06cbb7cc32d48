"""Checkpoint files: whole or absent after a crash at any point, and nothing bad is ever used."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.worker.checkpoints import (
    MAGIC,
    CheckpointError,
    Checkpoints,
    InvalidCheckpointError,
    listed,
    read,
)

POINTS = [
    "open temporary",
    "lock",
    "write head",
    "write payload",
    "sync file",
    "rename",
    "sync folder",
    "delete old",
    "done",
]


def shelf(folder: Path, slot: str = "worker-0") -> Checkpoints:
    return Checkpoints(folder, "demo.mistakebound", slot)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """Payload and summary come back as they were, from a folder that did not exist before."""
    folder = tmp_path / "new" / "folder"
    path = shelf(folder).write(b"\x00payload\n\xff", {"updates": [3, 4]})
    newest = shelf(folder).newest_valid()
    assert newest is not None
    assert (newest.path, newest.payload, newest.summary) == (path, b"\x00payload\n\xff", {"updates": [3, 4]})
    assert path.name == "demo.mistakebound_worker-0_000000000001.checkpoint"


def test_an_empty_payload_is_a_payload(tmp_path: Path) -> None:
    """Length zero is not confused with a truncated file."""
    shelf(tmp_path).write(b"", {})
    newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    assert newest.payload == b""


@pytest.mark.parametrize("exists", [True, False])
def test_an_empty_or_missing_folder_holds_no_checkpoint(tmp_path: Path, exists: bool) -> None:
    """The first start finds nothing, and that is no error."""
    folder = tmp_path if exists else tmp_path / "missing"
    assert shelf(folder).newest_valid() is None
    assert listed(folder) == []


def test_two_are_kept_and_the_newest_wins(tmp_path: Path) -> None:
    """Older ones are deleted; numbering goes on after a restart."""
    for number in range(5):
        shelf(tmp_path).write(b"%d" % number, {})
    newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    assert newest.payload == b"4"
    assert [path.name[-15:] for path in shelf(tmp_path).paths()] == ["0005.checkpoint", "0004.checkpoint"]
    assert len(files(tmp_path)) == 2


def _damaged(whole: bytes) -> dict[str, bytes]:
    header_end = whole.index(b"\n", len(MAGIC)) + 1
    return {
        "empty": b"",
        "only the magic": MAGIC,
        "foreign": b"PK\x03\x04 something else entirely",
        "another format": whole.replace(b"checkpoint 1", b"checkpoint 2", 1),
        "cut in the header": whole[: header_end - 5],
        "no payload": whole[:header_end],
        "cut by one byte": whole[:-1],
        "one byte more": whole + b"x",
        "one bit flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "header is not JSON": MAGIC + b"{\n" + whole[header_end:],
        "header is no object": MAGIC + b"[]\n" + whole[header_end:],
        "header lacks fields": MAGIC + b'{"length": 7}\n' + whole[header_end:],
        "header is not UTF-8": MAGIC + b'{"length": "\xff"}\n' + whole[header_end:],
        "zeros": bytes(len(whole)),
    }


@pytest.mark.parametrize("kind", list(_damaged(MAGIC + b"{}\n.")))
def test_a_damaged_checkpoint_is_set_aside_and_the_older_one_used(tmp_path: Path, kind: str) -> None:
    """Whatever happened to the newest file, the older one serves, and a warning says why."""
    shelf(tmp_path).write(b"older", {})
    path = shelf(tmp_path).write(b"payload", {})
    path.write_bytes(_damaged(path.read_bytes())[kind])
    with capture_logs() as logs:
        newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    assert newest.payload == b"older"
    assert files(tmp_path) == [newest.path.name, path.name + ".rejected"]
    (warning,) = logs
    assert (warning["event"], warning["log_level"]) == ("checkpoint_rejected", "warning")
    assert warning["path"] == str(path)
    assert warning["reason"].startswith("it")


def test_when_all_are_damaged_there_is_none(tmp_path: Path) -> None:
    """The worker then folds the log; the files stay for inspection, and writing goes on."""
    for payload in (b"a", b"b"):
        shelf(tmp_path).write(payload, {}).write_bytes(b"rubbish")
    assert shelf(tmp_path).newest_valid() is None
    assert [name[-9:] for name in files(tmp_path)] == [".rejected", ".rejected"]
    shelf(tmp_path).write(b"c", {})
    newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    assert newest.payload == b"c"


def test_a_folder_in_a_checkpoints_place_is_set_aside(tmp_path: Path) -> None:
    """Even what is no file at all does not stop the start."""
    path = shelf(tmp_path).write(b"older", {})
    path.with_name(path.name.replace("0001", "0002")).mkdir()
    newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    assert newest.payload == b"older"


def test_a_caller_can_refuse_one_and_take_the_next(tmp_path: Path) -> None:
    """A whole file of another log or settings is set aside by its reader."""
    for payload in (b"older", b"newer"):
        shelf(tmp_path).write(payload, {})
    seen = []
    for checkpoint in shelf(tmp_path).valid():
        seen.append(checkpoint.payload)
        shelf(tmp_path).set_aside(checkpoint.path, "it belongs to another log")
    assert seen == [b"newer", b"older"]
    assert shelf(tmp_path).newest_valid() is None


def test_reading_one_file_says_what_is_wrong(tmp_path: Path) -> None:
    """`checkpoint verify` can name the fault, without moving the file."""
    path = shelf(tmp_path).write(b"payload", {})
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InvalidCheckpointError, match="4 bytes where its header says 7"):
        read(path)
    assert path.exists()


def test_workers_share_a_folder_and_leave_each_other_alone(tmp_path: Path) -> None:
    """Each slot has its own numbering, and neither deletes, uses nor rejects another's files."""
    names = ["worker-0", "worker-1", "worker", "worker_0", "worker/0", "worker%2F0", "x" * 249, "x" * 248]
    for slot in names:
        for number in range(3):
            shelf(tmp_path, slot).write(f"{slot}{number}".encode(), {})
    other = tmp_path / "notes.checkpoint"
    other.write_bytes(b"not ours")
    for slot in names:
        newest = shelf(tmp_path, slot).newest_valid()
        assert newest is not None
        assert newest.payload == f"{slot}2".encode()
        assert len(shelf(tmp_path, slot).paths()) == 2
    assert other.read_bytes() == b"not ours"
    assert len(listed(tmp_path)) == 2 * len(names) + 1


def test_group_and_slot_cannot_be_confused(tmp_path: Path) -> None:
    """`a_b` + `c` and `a` + `b_c` are two workers."""
    Checkpoints(tmp_path, "a_b", "c").write(b"first", {})
    Checkpoints(tmp_path, "a", "b_c").write(b"second", {})
    newest = Checkpoints(tmp_path, "a_b", "c").newest_valid()
    assert newest is not None
    assert newest.payload == b"first"


CRASHING = """
import fcntl, os, pathlib, signal, sys
from service.worker import checkpoints

target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
store = checkpoints.Checkpoints(folder, "demo.mistakebound", "worker-0")

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

begin, sync, replace, unlink, lock = (
    checkpoints.Checkpoints._begin, os.fsync, pathlib.Path.replace, pathlib.Path.unlink, fcntl.flock
)
syncs = []

def dying_begin(self):
    path, file = begin(self)
    reached("open temporary")
    return path, Dying(file)

def dying_sync(number):
    sync(number)
    syncs.append(number)
    reached("sync file" if len(syncs) == 1 else "sync folder")

def dying_replace(self, other):
    replace(self, other)
    reached("rename")

def dying_unlink(self, missing_ok=False):
    unlink(self, missing_ok)
    reached("delete old")

def dying_lock(file, how):
    reached("lock")
    lock(file, how)

checkpoints.Checkpoints._begin = dying_begin
os.fsync, pathlib.Path.replace, pathlib.Path.unlink, fcntl.flock = (
    dying_sync, dying_replace, dying_unlink, dying_lock
)
store.write(b"new" * 100_000, {})
reached("done")
raise SystemExit("never reached " + target)
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_leaves_a_whole_checkpoint(tmp_path: Path, point: str) -> None:
    """Killed while writing, the old or the new one is there, whole; the next write clears what was left."""
    for payload in (b"oldest", b"old"):
        shelf(tmp_path).write(payload, {})
    died = subprocess.run(
        [sys.executable, "-c", CRASHING, point, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    newest = shelf(tmp_path).newest_valid()
    assert newest is not None
    renamed = POINTS.index(point) >= POINTS.index("rename")
    assert newest.payload == (b"new" * 100_000 if renamed else b"old")
    assert not any(name.endswith(".rejected") for name in files(tmp_path))
    shelf(tmp_path).write(b"next", {})
    assert [read(path).payload for path in shelf(tmp_path).paths()] == [b"next", newest.payload]
    assert len(files(tmp_path)) == 2


def test_the_order_of_writing_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content is on disk before the name, and the name before old ones are deleted."""
    for payload in (b"oldest", b"old"):
        shelf(tmp_path).write(payload, {})
    order: list[str] = []
    sync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def noted_sync(number: int) -> None:
        order.append("sync folder" if os.fstat(number).st_mode & 0o040000 else "sync file")
        sync(number)

    def noted_replace(self: Path, target: Path) -> Path:
        order.append("rename")
        return replace(self, target)

    def noted_unlink(self: Path, missing_ok: bool = False) -> None:
        order.append("delete")
        unlink(self, missing_ok)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    monkeypatch.setattr(Path, "unlink", noted_unlink)
    shelf(tmp_path).write(b"new", {})
    assert order == ["sync file", "rename", "sync folder", "delete"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_the_older_ones_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A full disk costs the new checkpoint only, and the error names the folder and the remedy."""
    shelf(tmp_path).write(b"old", {})
    before = files(tmp_path)

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError) as refused:
        shelf(tmp_path).write(b"new", {})
    assert str(tmp_path) in str(refused.value)
    assert os.strerror(code) in str(refused.value)
    assert "--set checkpoint.url" in str(refused.value)
    assert files(tmp_path) == before


def test_an_unusable_folder_is_refused_before_the_work_begins(tmp_path: Path) -> None:
    """A path below a file cannot become a folder; `prepare` and `write` say so, with the remedy."""
    (tmp_path / "file").write_bytes(b"")
    store = shelf(tmp_path / "file" / "checkpoints")
    for attempt in (store.prepare, lambda: store.write(b"x", {})):
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
            shelf(tmp_path).prepare()
    finally:
        os.seteuid(me)
        tmp_path.chmod(0o700)


def test_preparing_leaves_nothing_and_clears_what_dead_writers_left(tmp_path: Path) -> None:
    """Temporary files of the dead go, whoever they were; a living writer's stays."""
    dead = tmp_path / ".demo.mistakebound_worker-9_0123.tmp"
    dead.write_bytes(b"half")
    path, file = shelf(tmp_path)._begin()
    with file:
        shelf(tmp_path).prepare()
        assert files(tmp_path) == [path.name]
    shelf(tmp_path).prepare()
    assert files(tmp_path) == []


def test_writers_at_the_same_time_leave_whole_files_only(tmp_path: Path) -> None:
    """A paused predecessor that wakes up beside its successor breaks nothing."""
    errors: list[Exception] = []

    def write(writer: int) -> None:
        try:
            for number in range(20):
                shelf(tmp_path).write(f"{writer}.{number}".encode() * 1_000, {})
                assert shelf(tmp_path).newest_valid() is not None
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert errors == []
    shelf(tmp_path).prepare()
    assert len(files(tmp_path)) == 2
    for path in listed(tmp_path):
        read(path)
