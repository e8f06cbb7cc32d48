"""What is in the file: the tables, and the mark that tells a log from other databases."""

import sqlite3

from mistakebound.log.protocol import Refused

APPLICATION_ID = 0x6D626C67  # "mblg" in the file's header
FORMAT = 1
SPAN = 1 << 44
"""A row of `sides` is one partition of one topic. A record's `place` is its side's id * SPAN + its offset: one integer
key, so that a partition is one range of one tree."""

_STATEMENTS = (
    """CREATE TABLE topics (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uid TEXT NOT NULL,
        partitions INTEGER NOT NULL, config TEXT NOT NULL)""",
    """CREATE TABLE sides (
        id INTEGER PRIMARY KEY, topic INTEGER NOT NULL REFERENCES topics, partition INTEGER NOT NULL,
        low INTEGER NOT NULL DEFAULT 0, next INTEGER NOT NULL DEFAULT 0, UNIQUE (topic, partition))""",
    """CREATE TABLE records (
        place INTEGER PRIMARY KEY, timestamp_ms INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB)""",
    """CREATE TABLE positions (
        consumer TEXT NOT NULL, side INTEGER NOT NULL, next INTEGER NOT NULL, metadata TEXT NOT NULL,
        PRIMARY KEY (consumer, side)) WITHOUT ROWID""",
    "CREATE TABLE fences (transactional_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID",
    # For people with a sqlite shell: select * from readable.
    f"""CREATE VIEW readable AS
        SELECT name AS topic, partition, place % {SPAN} AS "offset", timestamp_ms,
            CAST(key AS TEXT) AS key, CAST(value AS TEXT) AS value
        FROM records JOIN sides ON sides.id = place / {SPAN} JOIN topics ON topics.id = sides.topic""",  # noqa: S608
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


def has_tables(connection: sqlite3.Connection, name: str) -> bool:
    """Whether this is a log; False for an empty database. Raises Refused for another program's."""
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == APPLICATION_ID and version == FORMAT:
        return True
    if application == APPLICATION_ID:
        raise Refused(
            f"the log {name} has format {version}, this program reads format {FORMAT};"
            " use the version of mistakebound that wrote it"
        )
    if tables or application or version:
        raise Refused(f"{name} is another program's database; name another file in log.url")
    return False


def make_tables(connection: sqlite3.Connection, name: str) -> None:
    """Make the tables, whole or not at all; nothing to do where another process was first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not has_tables(connection, name):
            for statement in _STATEMENTS:
                connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
