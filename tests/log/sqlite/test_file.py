"""What only a file can suffer: foreign content, missing rights, a held lock, a full disk."""

import contextlib
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.records import Outgoing, Position, Transaction
from mistakebound.log import open_log
from mistakebound.log.protocol import Fenced, Log, Refused, TransactionFailed, Unreachable
from mistakebound.log.sqlite.database import Database
from mistakebound.log.sqlite.log import SqliteLog
from mistakebound.log.sqlite.schema import make_tables
from tests.log.sqlite.conftest import settings
from tests.log.support.worker import Worker, example, values


def test_the_fenced_learn_it_from_poll(log: Log) -> None:
    """Also a worker without anything to commit ends."""
    first = Worker(log, "a").start()
    Worker(log, "b").start()

    with pytest.raises(Fenced):
        first.poll()


@pytest.mark.parametrize("content", [b"not a database, whatever its name " * 100, b"short"])
def test_a_file_that_is_no_database_is_named_and_left_alone(path: Path, content: bytes) -> None:
    """The error says which file; not a byte of it changes."""
    path.write_bytes(content)
    with pytest.raises(Unreachable, match=r"log\.db.*not a database"):
        open_log(settings(path))

    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    """Tables of somebody else are a reason to stop, not to add ours."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match=r"log\.db is another program's"):
        open_log(settings(path))

    assert path.read_bytes() == before


def test_another_format_is_refused(log: Log, path: Path) -> None:
    """A log of a later version is not guessed at."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(Refused, match="format 99"):
        open_log(settings(path))


def test_a_log_that_another_process_is_making_is_no_strangers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tells them apart is read at one moment, not partly before and partly after."""
    path.touch()
    other = sqlite3.connect(path, timeout=0, isolation_level=None)

    def make(statement: str) -> None:
        if "user_version" in statement:
            with contextlib.suppress(sqlite3.OperationalError):  # locked: it would wait
                make_tables(other, "log.db")

    def looked_over(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **named)
        connection.set_trace_callback(make)
        return connection

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", looked_over)
    database = Database(path)

    assert not database.exists()
    make_tables(other, "log.db")
    assert database.exists()
    database.close()
    other.close()


def test_an_empty_file_becomes_a_log(path: Path) -> None:
    """As `mktemp` leaves it."""
    path.touch()
    with open_log(settings(path)) as log:
        assert log.describe()["examples"] is None
        assert len(log.create_topics(1, {})) == 6


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Also where a file stands in its place."""
    (tmp_path / "file").touch()
    for folder in (tmp_path / "no", tmp_path / "file"):
        with pytest.raises(Unreachable, match=f"{folder} is not a folder"):
            open_log(settings(folder / "log.db"))


@pytest.fixture
def as_somebody_without_rights() -> Iterator[None]:
    """File permissions do not bind root, so root becomes nobody for the time of the test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder, reachable by everybody, in which nobody may write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.mark.usefixtures("as_somebody_without_rights")
def test_a_folder_that_cannot_be_written_is_named(locked_folder: Path) -> None:
    """The error gives the file and the remedy."""
    with (
        open_log(settings(locked_folder / "log.db")) as log,
        pytest.raises(
            Unreachable, match=rf"{locked_folder}/log\.db.*write access to the file and to its folder"
        ),
    ):
        log.create_topics(1, {})


def test_a_lock_held_too_long_fails_the_transaction(log: Log, path: Path) -> None:
    """The worker is told what holds it up, and nothing of the transaction is written, then or later."""
    other = SqliteLog(settings(path), Database(path, busy_timeout_s=0.05))
    worker = Worker(other).start()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransactionFailed, match="another process holds its write lock"):
        worker.commit([Outgoing("predictions", 0, None, b"never")])
    with pytest.raises(Unreachable, match="another process holds its write lock"):
        other.append([example(0, b"never")])
    holder.execute("COMMIT")
    holder.close()

    worker.commit([Outgoing("predictions", 0, None, b"once")])
    assert values(log, "predictions", 0) == [b"once"]
    assert values(log, "examples", 0) == []
    other.close()


def test_a_full_disk_fails_the_transaction(log: Log, path: Path) -> None:
    """Here sqlite's own page limit stands for the disk: the transaction is gone, the log is whole."""
    worker = Worker(log).start()
    database = log._database  # type: ignore[attr-defined]
    pages = database.rows("PRAGMA page_count")[0][0]
    database.rows(f"PRAGMA max_page_count = {pages + 10}")
    with pytest.raises(TransactionFailed, match="make room"):
        worker.commit([Outgoing("predictions", 0, None, bytes(1_000_000))])
    database.rows("PRAGMA max_page_count = 1000000")

    assert values(log, "predictions", 0) == []
    worker.commit([Outgoing("predictions", 0, None, b"fits")])
    assert values(log, "predictions", 0) == [b"fits"]


def test_every_commit_reaches_the_disk(log: Log) -> None:
    """WAL with synchronous=FULL: neither a kill nor a power cut takes back what was reported."""
    database = log._database  # type: ignore[attr-defined]

    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.rows("PRAGMA synchronous") == [(2,)]


def test_connections_of_ended_threads_are_closed(log: Log) -> None:
    """A server with a thread a request does not pile up open files."""
    database = log._database  # type: ignore[attr-defined]
    for _ in range(20):
        thread = threading.Thread(target=log.group_positions)
        thread.start()
        thread.join()

    assert len(database._connections) <= 2


def test_closing_waits_for_a_query_of_another_thread(path: Path) -> None:
    """A connection that is closed amid its thread's query would take the whole process down."""
    log = open_log(settings(path))
    log.create_topics(1, {})
    database = log._database  # type: ignore[attr-defined]
    begun, may_end = threading.Event(), threading.Event()
    found: list[Any] = []

    def pause() -> int:
        begun.set()
        return int(may_end.wait(30))

    def ask() -> None:
        with database._connection() as connection:
            connection.create_function("pause", 0, pause)
        found.extend(database.rows("SELECT pause()"))

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(30)
    closing = threading.Thread(target=log.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    may_end.set()
    for thread in (asking, closing):
        thread.join(30)
        assert not thread.is_alive()

    assert found == [(1,)]
    with pytest.raises(Unreachable, match="was closed"):
        log.append([example(0, b"v")])


def test_a_closed_log_says_so(path: Path) -> None:
    """Closing twice is nothing; using it afterwards is an error in our words."""
    log = open_log(settings(path))
    log.create_topics(1, {})
    log.close()
    log.close()

    with pytest.raises(Unreachable, match="was closed"):
        log.append([example(0, b"v")])


def test_people_can_read_the_log_with_a_sqlite_shell(log: Log, path: Path) -> None:
    """The view `readable` shows topics by name and values as text."""
    log.append([Outgoing("labels", 1, b"k", b'{"id": "a"}', (), 5)])
    connection = sqlite3.connect(path)

    assert connection.execute("SELECT * FROM readable").fetchall() == [
        ("labels", 1, 0, 5, "k", '{"id": "a"}')
    ]
    connection.close()


def test_positions_are_committed_without_outputs(log: Log) -> None:
    """A step may only move positions."""
    worker = Worker(log).start()
    receipt = worker.session.commit(Transaction((), {1: Position(0, 0, "only")}), worker.generation)

    assert receipt.ends == {}
    assert log.group_positions() == {0: None, 1: Position(0, 0, "only")}
