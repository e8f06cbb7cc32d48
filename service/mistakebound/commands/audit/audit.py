"""`audit`: recompute every number of a log from its topics."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, open_log, read_settings
from mistakebound.commands.output import print_json, print_message, render_table
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.commands.audit.sources import LogSource, RecordingSource
    from mistakebound.core.audit import Findings

PROGRESS_S = 2.0


def audit(
    checkpoints: Annotated[
        list[str] | None,
        Argument(
            metavar="[CHECKPOINT]...", help="Paths or URLs; default this log's checkpoints in checkpoint.url."
        ),
    ] = None,
    recording: Annotated[
        str | None,
        Option("--recording", metavar="FILE|-", help="Audit a recording of all topics, not a log."),
    ] = None,
    first: Annotated[int, Option("--first", metavar="N", help="How many differences to show.")] = 10,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Recompute every prediction, update, decision and tally from the topics; exit 3 if one differs.

    Reads the topics, or a recording, and checkpoints; needs no worker and writes nothing.
    """
    from mistakebound.commands.audit.checkpoints import loads_of_files, loads_of_log
    from mistakebound.commands.audit.sources import LogSource, open_recording
    from mistakebound.core.audit import Findings
    from mistakebound.core.audit import audit as examine

    settings = read_settings(config, sets, log)
    findings = Findings(first)
    with ExitStack() as held:
        source: LogSource | RecordingSource
        if recording is None:
            reached = held.enter_context(open_log(settings))
            source = LogSource(reached)
            loads = loads_of_log(checkpoints, settings, reached, findings)
        else:
            source = held.enter_context(open_recording(recording))
            loads = loads_of_files(checkpoints)
        examine(source, settings.messages, loads, findings, _print_progress(source))
    _print(findings, json=json)
    if findings.differences:
        raise CommandError(f"{findings.differences} differences", ExitCode.CHECK_FAILED)


def _print_progress(source: "LogSource | RecordingSource") -> Callable[[int, int], None]:
    """Prints a line every few seconds: how much of all partitions is done."""
    next_s = time.monotonic() + PROGRESS_S

    def observe(partition: int, offset: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            done = (partition + min(1.0, (offset + 1) / source.end(partition))) / source.partitions
            print_message(
                f"{done:4.0%}  partition {partition + 1} of {source.partitions}, outcomes offset {offset}"
            )
            next_s = time.monotonic() + PROGRESS_S

    return observe


def _print(findings: "Findings", *, json: bool) -> None:
    from mistakebound.core.audit.findings import CHECKS

    rows = [(name, findings.checked[name], findings.differing[name]) for name in CHECKS]
    if json:
        document = {
            "checked": {name: checked for name, checked, _ in rows},
            "differences": {name: differing for name, _, differing in rows if differing},
            "notes": findings.notes,
            "first": [each._asdict() for each in findings.first],
        }
        print_json(document)
        return
    print(render_table(("checked", "count", "differences"), *rows))
    for text, count in findings.notes.items():
        print(f"note: {count} {text}")
    for each in findings.first:
        print(f"\n{each.check}: {each.place}\n  {each.text}")
    if findings.differences > len(findings.first):
        print(f"\n... and {findings.differences - len(findings.first)} more")
