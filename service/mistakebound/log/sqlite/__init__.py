"""The log in one sqlite file, or in memory: real transactions, one worker, readers beside it.

Made for a laptop, tests and the demo; it keeps every promise of `mistakebound.log.protocol`. OffsetSet are dense
from 0, nothing is ever deleted, and one session owns all partitions (a newer one fences it).
"""

from pathlib import Path

from mistakebound.log.protocol import Log, Unreachable
from mistakebound.log.sqlite.database import Database, shared_memory
from mistakebound.log.sqlite.log import SqliteLog
from mistakebound.settings import Settings

__all__ = ["open_log"]


def open_log(settings: Settings) -> Log:
    """Open the log at `sqlite:FILE` or `sqlite::memory:`.

    A file is made by `create_topics`, not here, so that asking for the status of a mistyped name leaves
    nothing behind. The memory log is one for the whole process: it is shared by all who open it, and
    gone when the last of them closes.

    Raises Unreachable (malformed URL, no such folder, not a database), Refused (somebody else's file).
    """
    url = settings.log.url or ""
    place = url.removeprefix("sqlite:")
    if place == url or not place or place.startswith("//"):
        raise Unreachable(f"log.url is {url!r}; a sqlite log is sqlite:FILE or sqlite::memory:")
    if place == ":memory:":
        return SqliteLog(settings, shared_memory())
    path = Path(place).expanduser().absolute()
    if not path.parent.is_dir():
        raise Unreachable(f"log.url is {url!r}: {path.parent} is not a folder; make it first")
    database = Database(path)
    try:
        database.exists()  # a foreign file is found now, not in the middle of the work
    except BaseException:
        database.close()
        raise
    return SqliteLog(settings, database)
