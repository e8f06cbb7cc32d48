"""`audit`: recompute every number of a log from its topics."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.meter import Meter
from mistakebound.commands.options import Config, Json, LogUrl, Sets, load, open_log
from mistakebound.commands.output import number_of, print_form, render_table
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.commands.audit.sources import LogSource, RecordingSource
    from mistakebound.core.audit import Findings


def audit(
    checkpoints: Annotated[
        list[str] | None,
        Argument(
            metavar="CHECKPOINT",
            help="Paths, URLs, or names in checkpoint.url; default all of this log in there.",
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
    from mistakebound.commands.checkpoint_files import place_of
    from mistakebound.core.audit import Findings
    from mistakebound.core.audit import audit as examine

    loaded = load(config, sets, log)
    settings = loaded.settings
    files = [place_of(file, loaded) for file in checkpoints or ()]
    findings = Findings(first)
    with ExitStack() as held:
        source: LogSource | RecordingSource
        if recording is None:
            reached = held.enter_context(open_log(settings))
            source = LogSource(reached)
            loads = loads_of_log(files, settings, reached, findings)
        else:
            source = held.enter_context(open_recording(recording))
            loads = loads_of_files(files)
        meter = held.enter_context(Meter())

        def observe(partition: int, offset: int) -> None:
            meter.show(lambda _: _progress(source, partition, offset))

        examine(source, settings.messages, loads, findings, observe)
    _print(findings, json=json)
    if findings.differences:
        raise CommandError(number_of(findings.differences, "difference"), ExitCode.CHECK_FAILED)


def _progress(source: "LogSource | RecordingSource", partition: int, offset: int) -> str:
    """How much of all partitions is done."""
    done = (partition + min(1.0, (offset + 1) / source.end(partition))) / source.partitions
    return f"{done:4.0%}  partition {partition + 1} of {source.partitions}, outcomes offset {offset}"


def _print(findings: "Findings", *, json: bool) -> None:
    from mistakebound.commands.json_forms import Audited
    from mistakebound.core.audit.findings import CHECKS

    rows = [(name, findings.checked[name], findings.differing[name]) for name in CHECKS]
    if json:
        checked = {name: count for name, count, _ in rows}
        differing = {name: count for name, _, count in rows if count}
        print_form(Audited(checked, differing, dict(findings.notes), findings.first))
        return
    print(render_table(("checked", "count", "differences"), *rows))
    for text, count in findings.notes.items():
        print(f"note: {count} {text}")
    for each in findings.first:
        print(f"\n{each.check}: {each.place}\n  {each.text}")
    if findings.differences > len(findings.first):
        print(f"\n... and {findings.differences - len(findings.first)} more")
