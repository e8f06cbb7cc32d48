"""The checkpoints that an audit looks at, each with how to read it."""

from collections.abc import Callable, Iterable, Iterator

from mistakebound.commands.checkpoint_files import open_own_store, read_checkpoint
from mistakebound.commands.errors import CommandError
from mistakebound.core.audit import Findings
from mistakebound.core.checkpoint import Checkpoint, check_belongs
from mistakebound.core.faults import BadSnapshot
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings

Loads = Iterable[tuple[str, Callable[[], Checkpoint]]]


def loads_of_log(files: list[str] | None, settings: Settings, log: Log, findings: Findings) -> Loads:
    """Those named, which must be this log's; or this log's in `checkpoint.url`, where others may have theirs."""
    ids: dict[str, str] = {topic: each.id for topic, each in log.describe().items() if each is not None}

    def check(found: Checkpoint) -> None:
        check_belongs(found, settings.group, ids, log.partitions)

    if files:
        return [(file, _loader(file, check)) for file in files]
    return _in_own_store(settings, check, findings)


def loads_of_files(files: list[str] | None) -> Loads:
    """Those named, whichever log's they are."""
    return [(file, _loader(file)) for file in files or ()]


def _in_own_store(
    settings: Settings, check: Callable[[Checkpoint], None], findings: Findings
) -> Iterator[tuple[str, Callable[[], Checkpoint]]]:
    store = open_own_store(settings.checkpoint)
    for name in () if store is None else map(store.where, store.names()):
        load = _loader(name)
        try:
            found = load()
        except BadSnapshot:
            yield name, load  # nobody can tell whose it is
            continue
        try:
            check(found)
        except BadSnapshot:
            findings.note("checkpoints of other logs in the folder")
            continue
        yield name, load


def _loader(
    file: str,
    check: Callable[[Checkpoint], None] = lambda found: None,  # noqa: ARG005
) -> Callable[[], Checkpoint]:
    def load() -> Checkpoint:
        try:
            found = read_checkpoint(file)
        except CommandError as error:
            raise BadSnapshot(str(error)) from None
        check(found)
        return found

    return load
