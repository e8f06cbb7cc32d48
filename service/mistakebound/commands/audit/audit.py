"""`audit`: every number of a log made again from its topics."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, Json, LogUrl, Sets, opened, settings_of

if TYPE_CHECKING:
    from mistakebound.core.audit import Findings
    from mistakebound.core.checkpoint import Checkpoint
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

PROGRESS_S = 2.0
ASK_S = 30.0
"""How long a store has for one answer."""

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CHECKPOINT]...", help="Paths or URLs; default this log's checkpoints in checkpoint.url."
    ),
]


def audit(
    checkpoints: Files = None,
    recording: Annotated[
        str | None,
        typer.Option("--recording", metavar="FILE|-", help="Audit a recording of all topics, not a log."),
    ] = None,
    first: Annotated[int, typer.Option("--first", metavar="N", help="Show so many differences.")] = 10,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Make every prediction, update, decision and tally again from the topics; exit 3 where one differs.

    Reads the topics (or a recording) and checkpoints, asks no worker and writes nothing.
    """
    from mistakebound.commands.audit.sources import LogSource, RecordingSource, recorded
    from mistakebound.core.audit import Findings
    from mistakebound.core.audit import audit as examine

    settings = settings_of(config, sets, log)
    findings = Findings(first)
    with ExitStack() as held:
        source: LogSource | RecordingSource
        if recording is None:
            reached = held.enter_context(opened(settings))
            source = LogSource(reached)
            found = _of_log(checkpoints, settings, reached, findings)
        else:
            source = held.enter_context(recorded(recording))
            found = ((name, _loader(name)) for name in checkpoints or ())
        examine(source, settings.messages, found, findings, _Progress(source.partitions, source.end))
    _print(findings, json=json)
    if findings.differences:
        raise CommandError(ExitCode.CHECK_FAILED, f"{findings.differences} differences")


def _of_log(
    files: list[str] | None, settings: "Settings", log: "Log", findings: "Findings"
) -> "Iterator[tuple[str, Callable[[], Checkpoint]]]":
    """Those named must be this log's; in the folder others may have theirs."""
    from mistakebound.core.checkpoint import check_belongs
    from mistakebound.core.faults import BadSnapshot
    from mistakebound.worker.checkpoints.open_store import open_store

    ids: dict[str, str] = {topic: each.id for topic, each in log.describe().items() if each is not None}
    if files:
        for name in files:
            yield name, _loader(name, settings.group, ids, log.partitions)
        return
    rules = settings.checkpoint
    if not rules.url:
        return
    shelf = open_store(rules.url, rules.timeout.total_seconds())
    for name in map(shelf.where, shelf.names()):
        load = _loader(name)
        try:
            found = load()
        except BadSnapshot:
            yield name, load  # it cannot be told whose it is
            continue
        try:
            check_belongs(found, settings.group, ids, log.partitions)
        except BadSnapshot:
            findings.note("checkpoints of other logs in the folder")
            continue
        yield name, load


def _loader(
    file: str, group: str | None = None, ids: Mapping[str, str] | None = None, partitions: int = 0
) -> "Callable[[], Checkpoint]":
    from mistakebound.core.checkpoint import check_belongs, decode_checkpoint
    from mistakebound.core.faults import BadSnapshot
    from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError, parse
    from mistakebound.worker.checkpoints.open_store import open_store
    from mistakebound.worker.checkpoints.store import split

    url, name = split(file)

    def load() -> "Checkpoint":
        try:
            found = decode_checkpoint(parse(open_store(url, ASK_S).read(name)[0]).payload)
        except ValueError as error:
            raise BadSnapshot(str(error)) from None
        except OSError as error:
            raise BadSnapshot(f"it cannot be read: {error.strerror or error}") from None
        except InvalidCheckpointError as error:
            raise BadSnapshot(str(error)) from None
        if group is not None and ids is not None:
            check_belongs(found, group, ids, partitions)
        return found

    return load


class _Progress:
    """A line every few seconds: how much of all partitions is done."""

    def __init__(self, partitions: int, end: Callable[[int], int]) -> None:
        self._partitions, self._end = partitions, end
        self._next_s = time.monotonic() + PROGRESS_S

    def __call__(self, partition: int, offset: int) -> None:
        from mistakebound.commands.output import message

        if time.monotonic() >= self._next_s:
            done = (partition + min(1.0, (offset + 1) / self._end(partition))) / self._partitions
            message(f"{done:4.0%}  partition {partition + 1} of {self._partitions}, outcomes offset {offset}")
            self._next_s = time.monotonic() + PROGRESS_S


def _print(findings: "Findings", *, json: bool) -> None:
    from mistakebound.commands.output import as_json, table
    from mistakebound.core.audit.findings import CHECKS

    if json:
        as_json(
            {
                "checked": {name: findings.checked[name] for name in CHECKS},
                "differences": {
                    name: findings.differing[name] for name in CHECKS if findings.differing[name]
                },
                "notes": dict(findings.notes),
                "first": [each._asdict() for each in findings.first],
            }
        )
        return
    rows = [(name, findings.checked[name], findings.differing[name]) for name in CHECKS]
    print(table(("checked", "count", "differences"), rows))
    for text, count in findings.notes.items():
        print(f"note: {count} {text}")
    for each in findings.first:
        print(f"\n{each.check}: {each.place}\n  {each.text}")
    if findings.differences > len(findings.first):
        print(f"\n... and {findings.differences - len(findings.first)} more")
