"""The log in one sqlite file, or in memory: real transactions, one worker, readers beside it.

Made for a laptop, tests and the demo; it keeps every promise of `mistakebound.log.protocol`. Offsets are dense
from 0, nothing is ever deleted, and one session owns all partitions (a newer one fences it).
"""

from pathlib import Path

from mistakebound.log.protocol import Log, Unreachable
from mistakebound.log.sqlite.database import Database, shared_memory
from mistakebound.log.sqlite.log import SqliteLog
from mistakebound.settings import Settings


def open_log(settings: Settings) -> Log:
    """Open the log at `sqlite:FILE` or `sqlite::memory:`.

    `create_topics` makes the file, not this function: asking for the status of a mistyped name leaves nothing
    behind. The memory log is one for the whole process: all who open it share it, and it is
    gone when the last of them closes.

    Raises Unreachable (malformed URL, no such folder, not a database), Refused (another program's file).
    """
    url = settings.log.url or ""
    file = url.removeprefix("sqlite:")
    if file == url or not file or file.startswith("//"):
        raise Unreachable(f"log.url is {url!r}; a sqlite log is sqlite:FILE or sqlite::memory:")
    if file == ":memory:":
        return SqliteLog(settings, shared_memory())
    path = Path(file).expanduser().absolute()
    if not path.parent.is_dir():
        raise Unreachable(f"log.url is {url!r}: {path.parent} is not a folder; make it first")
    database = Database(path)
    try:
        database.exists()  # find a foreign file now, not in the middle of the work
    except BaseException:
        database.close()
        raise
    return SqliteLog(settings, database)
