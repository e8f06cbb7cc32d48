"""The checkpoints that an audit looks at, each with a function that reads it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mistakebound.commands.checkpoint_files import open_own_store, read_checkpoint
from mistakebound.commands.errors import CommandError
from mistakebound.core.audit import Findings
from mistakebound.core.checkpoint_content import Checkpoint, check_belongs
from mistakebound.core.faults import BadSnapshot
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings

Loads = Iterable[tuple[str, Callable[[], Checkpoint]]]


def loads_of_log(files: list[str] | None, settings: Settings, log: Log, findings: Findings) -> Loads:
    """The files named, which must be this log's; or this log's in `checkpoint.url`, which other logs may share."""
    ids: dict[str, str] = {topic: each.id for topic, each in log.describe().items() if each is not None}

    def check(found: Checkpoint) -> None:
        check_belongs(found, settings.group, ids, log.partitions)

    if files:
        return [(file, partial(_load, file, check)) for file in files]
    return _in_own_store(settings, check, findings)


def loads_of_files(files: list[str] | None) -> Loads:
    """The files named, whichever log they are of."""
    return [(file, partial(_load, file)) for file in files or ()]


def _in_own_store(
    settings: Settings, check: Callable[[Checkpoint], None], findings: Findings
) -> Iterator[tuple[str, Callable[[], Checkpoint]]]:
    store = open_own_store(settings.checkpoint)
    for name in () if store is None else map(store.where, store.names()):
        load = partial(_load, name)
        try:
            found = load()
        except BadSnapshot:
            yield name, load  # nobody can tell which log it is of
            continue
        try:
            check(found)
        except BadSnapshot:
            findings.note("checkpoints of other logs in the folder")
        else:
            yield name, load


def _load(file: str, check: Callable[[Checkpoint], None] | None = None) -> Checkpoint:
    try:
        found = read_checkpoint(file)
    except CommandError as error:
        raise BadSnapshot(str(error)) from None
    if check is not None:
        check(found)
    return found
