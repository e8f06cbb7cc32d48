"""`audit`: every number of a log recomputed from its topics."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, open_log, read_settings
from mistakebound.commands.output import print_json, print_message, render_table
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.core.audit import Findings, Source

PROGRESS_S = 2.0


def audit(
    checkpoints: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHECKPOINT]...", help="Paths or URLs; default this log's checkpoints in checkpoint.url."
        ),
    ] = None,
    recording: Annotated[
        str | None,
        typer.Option("--recording", metavar="FILE|-", help="Audit a recording of all topics, not a log."),
    ] = None,
    first: Annotated[int, typer.Option("--first", metavar="N", help="How many differences to show.")] = 10,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Recompute every prediction, update, decision and tally from the topics; exit 3 where one differs.

    Reads the topics (or a recording) and checkpoints, asks no worker and writes nothing.
    """
    from mistakebound.commands.audit.checkpoints import loads_of_files, loads_of_log
    from mistakebound.commands.audit.sources import LogSource, open_recording
    from mistakebound.core.audit import Findings
    from mistakebound.core.audit import audit as examine

    settings = read_settings(config, sets, log)
    findings = Findings(first)
    with ExitStack() as held:
        source: Source
        if recording is None:
            reached = held.enter_context(open_log(settings))
            source = LogSource(reached)
            loads = loads_of_log(checkpoints, settings, reached, findings)
        else:
            source = held.enter_context(open_recording(recording))
            loads = loads_of_files(checkpoints)
        examine(source, settings.messages, loads, findings, _ProgressLines(source.partitions, source.end))
    _print(findings, json=json)
    if findings.differences:
        raise CommandError(f"{findings.differences} differences", ExitCode.CHECK_FAILED)


class _ProgressLines:
    """A line every few seconds: how much of all partitions is done."""

    def __init__(self, partitions: int, end: Callable[[int], int]) -> None:
        self._partitions, self._end = partitions, end
        self._next_s = time.monotonic() + PROGRESS_S

    def __call__(self, partition: int, offset: int) -> None:
        if time.monotonic() >= self._next_s:
            done = (partition + min(1.0, (offset + 1) / self._end(partition))) / self._partitions
            print_message(
                f"{done:4.0%}  partition {partition + 1} of {self._partitions}, outcomes offset {offset}"
            )
            self._next_s = time.monotonic() + PROGRESS_S


def _print(findings: "Findings", *, json: bool) -> None:
    from mistakebound.core.audit.findings import CHECKS

    if json:
        print_json(
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
    print(render_table(("checked", "count", "differences"), *rows))
    for text, count in findings.notes.items():
        print(f"note: {count} {text}")
    for each in findings.first:
        print(f"\n{each.check}: {each.place}\n  {each.text}")
    if findings.differences > len(findings.first):
        print(f"\n... and {findings.differences - len(findings.first)} more")
