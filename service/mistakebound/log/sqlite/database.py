"""One sqlite database: its connections, its tables, its errors in our words.

- A file has one connection per thread, so readers never wait for the worker (WAL mode).
- Memory has one connection for the process, behind a lock.
- `transaction` never runs a caller's code while the write lock is held, apart from its own block.

WAL mode needs shared memory between the processes: the file must be on a local disk.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mistakebound.log.protocol import Unreachable
from mistakebound.log.sqlite.schema import has_tables, make_tables

BUSY_TIMEOUT_S = 30.0
RETRY_S = 0.01
CLOSE_S = 5.0
"""How long closing waits for another thread's query."""

_REMEDIES = {
    (
        "SQLITE_BUSY",
        "SQLITE_LOCKED",
    ): "another process holds its write lock; find it with `fuser`, and stop it",
    ("SQLITE_FULL",): "the disk is full; make room",
    ("SQLITE_READONLY",): "it cannot be written; give this user write access to the file and to its folder",
    ("SQLITE_CANTOPEN", "SQLITE_PERM"): "give this user read and write access to the file and to its folder",
    ("SQLITE_NOTADB",): "it is not a sqlite database; name another file in log.url",
    ("SQLITE_CORRUPT",): "it is damaged; restore a copy",
    ("SQLITE_IOERR",): "the disk fails or is full; look at the system's log",
}


class _Own(NamedTuple):
    """A thread's connection, and what the thread holds while it uses it."""

    connection: sqlite3.Connection
    in_use: "threading.RLock"


class Database:
    """A log's database at `path`, or in memory where `path` is None. Safe to share between threads.

    Every method raises Unreachable when sqlite fails, with the file and the remedy.
    """

    def __init__(self, path: Path | None, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.name = "sqlite::memory:" if path is None else str(path)
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()  # guards the dictionary, and for memory the one connection
        self._connections: dict[threading.Thread, _Own] = {}
        self._closed = False
        self._memory: sqlite3.Connection | None = None
        if path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            make_tables(self._memory, self.name)

    def exists(self) -> bool:
        """Whether the tables are there. Raises Unreachable or Refused for a file that is not a log."""
        if self._path is None or threading.current_thread() in self._connections:
            return True
        if not self._path.exists():
            return False
        with self._in_our_words():
            return self._open(create=False) is not None

    def create(self) -> None:
        """Make the file and its tables where they are missing."""
        if not self.exists():
            with self._in_our_words():
                self._open(create=True)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query, read at one moment."""
        with self._in_our_words(), self._connection() as connection:
            return connection.execute(sql, values).fetchall()

    def rows_up_to(self, most_bytes: int, sql: str, values: Sequence[Any]) -> list[Any]:
        """Rows (place, timestamp, key, value, headers) until `most_bytes` are exceeded; one at least."""
        found = []
        with self._in_our_words(), self._connection() as connection:
            cursor = connection.execute(sql, values)
            for row in cursor:
                found.append(row)
                most_bytes -= len(row[2] or b"") + len(row[3] or b"")
                if most_bytes <= 0:
                    break
            cursor.close()  # ends the read transaction, so that the WAL can be checkpointed
        return found

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The only writer meanwhile: all that the block writes is kept, or nothing."""
        with self._in_our_words(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                try:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                except sqlite3.Error:
                    with self._lock:
                        self._connections.pop(threading.current_thread(), None)
                        connection.close()  # which rolls back, whatever state it was in
                raise

    def close(self) -> None:
        """Close every thread's connection. Using the log afterwards raises Unreachable.

        Amid a query of its thread that would take the interpreter down, so the query is waited for; a connection whose
        query does not end is left to the end of the process.
        """
        with self._lock:
            self._closed = True
            connections = list(self._connections.values())
            self._connections.clear()
            if self._memory is not None:
                self._memory.close()
        for connection, in_use in connections:
            if in_use.acquire(timeout=CLOSE_S):
                connection.close()
                in_use.release()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            with self._lock:
                yield self._memory
            return
        own = self._connections.get(threading.current_thread()) or self._open(create=False)
        if own is None:
            raise Unreachable(f"the log {self.name} is gone or empty; run `mistakebound topics create`")
        with own.in_use:
            if self._closed:
                raise Unreachable(f"the log {self.name} was closed")
            yield own.connection

    def _open(self, create: bool) -> _Own | None:
        """This thread's connection, kept; None where there are no tables and they are not to be made."""
        assert self._path is not None
        if self._closed:
            raise Unreachable(f"the log {self.name} was closed")
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,  # `close` comes from another thread
        )
        try:
            # At one moment: another process may be making the tables.
            connection.execute("BEGIN")
            found = has_tables(connection, self.name)
            connection.execute("COMMIT")
            if not found:
                if not create:
                    connection.close()
                    return None
                self._switch_to_wal(connection)
                make_tables(connection, self.name)
            # Every commit reaches the disk before it returns. A killed process loses nothing in any case (its
            # writes are with the kernel), but after a power cut checkpoints could be ahead of the log.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 67108864")
        except BaseException:
            connection.close()
            raise
        with self._lock:
            for thread in [thread for thread in self._connections if not thread.is_alive()]:
                self._connections.pop(thread).connection.close()
            own = self._connections[threading.current_thread()] = _Own(connection, threading.RLock())
        return own

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        """Ask until it is done: sqlite does not wait for another process that is making the same file."""
        given_up_s = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > given_up_s:
                    raise
                time.sleep(RETRY_S)
            else:
                break
        if mode != "wal":
            raise Unreachable(f"the log {self.name} cannot use WAL mode; put it on a local disk")

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code: str = getattr(error, "sqlite_errorname", "")
            if not code and self._closed:
                raise Unreachable(f"the log {self.name} was closed") from error
            known = (text for starts, text in _REMEDIES.items() if code.startswith(starts))
            remedy = next(known, "see sqlite.org/rescode.html")
            raise Unreachable(f"the log {self.name}: {error} ({code}); {remedy}") from error


class _SharedMemory(Database):
    """The process's one memory database. It closes when as many have closed it as have opened it."""

    lock = threading.Lock()
    open_: ClassVar["_SharedMemory | None"] = None

    def __init__(self) -> None:
        super().__init__(None)
        self.users = 0

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                super().close()
                _SharedMemory.open_ = None


def shared_memory() -> Database:
    """The process's memory database: made by the first who asks, gone when the last has closed it."""
    with _SharedMemory.lock:
        database = _SharedMemory.open_ = _SharedMemory.open_ or _SharedMemory()
        database.users += 1
        return database
