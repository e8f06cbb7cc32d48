"""`replay`: run the worker's own step over a recording or labelled data, with no log and no waiting."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import FormOption, open_input_file
from mistakebound.commands.labelled_files.columns import (
    Delimiter,
    FeatureColumns,
    IdColumn,
    IgnoredColumns,
    LabelColumn,
    TenantColumn,
    given_columns,
)
from mistakebound.commands.options import Config, Json, LogUrl, Sets, print_cautions, read_settings
from mistakebound.commands.unusable import MaxInvalid
from mistakebound.exit_codes import ExitCode


def replay(
    file: Annotated[str, Argument(metavar="FILE|-", help="What to replay; - is stdin.")],
    form: FormOption = None,
    label: LabelColumn = None,
    record_id: IdColumn = None,
    features: FeatureColumns = None,
    ignore: IgnoredColumns = None,
    delimiter: Delimiter = None,
    tenant: TenantColumn = None,
    delay: Annotated[
        int,
        Option("--delay", min=0, metavar="N", help="Labelled data: examples outstanding at each prediction."),
    ] = 0,
    epochs: Annotated[
        int, Option("--epochs", min=1, metavar="T", help="Labelled data: passes over it, at most.")
    ] = 1,
    shuffle: Annotated[bool, Option("--shuffle", help="Labelled data: another order in each pass.")] = False,
    seed: Annotated[
        int | None, Option("--seed", min=0, metavar="N", help="Seed of --shuffle; default 0.")
    ] = None,
    add_a_feature: Annotated[
        bool,
        Option(
            "--add-a-feature",
            help="Labelled data: give each example a feature of its own; with more passes any data is separable.",
        ),
    ] = False,
    reevaluate: Annotated[
        int,
        Option(
            "--reevaluate",
            min=0,
            metavar="BINS",
            help="Labelled data: predict each example again at the ends of so many bins of its wait.",
        ),
    ] = 0,
    afresh: Annotated[
        bool,
        Option("--afresh", help="A recording: run its inputs anew, not as the worker came to them."),
    ] = False,
    fit_scale: Annotated[
        bool, Option("--fit-scale", help="Print [features.scale] as TOML, fitted on the file, and stop.")
    ] = False,
    report: Annotated[
        str | None, Option("--report", metavar="FILE|-", help="Write the report as JSON.")
    ] = None,
    expect: Annotated[
        list[str] | None,
        Option("--expect", metavar="EXPR", help="Such as 'mistakes <= 200'; exit 3 if not; repeatable."),
    ] = None,
    judged: Annotated[
        str | None, Option("--judged", metavar="FILE", help="Write each judged prediction, for compare.")
    ] = None,
    max_invalid: MaxInvalid = None,
    compare: Annotated[
        bool, Option("--compare", help="Also print how other rules do on the same data; two classes only.")
    ] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress table.")] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Learn from a file as the worker would, and print the result.

    The same file with the same settings gives the same report, byte for byte. Where nothing was judged, or too much
    was rejected, the result is printed and the exit code is 3.
    """
    import sys

    from mistakebound.commands.data_files import read_as
    from mistakebound.commands.output import print_message
    from mistakebound.commands.progress import Progress
    from mistakebound.commands.recordings import RecordingFile
    from mistakebound.commands.replay import fit_scale as scale
    from mistakebound.commands.replay.expectations import Expectation
    from mistakebound.commands.replay.judged_file import open_judged
    from mistakebound.commands.replay.render import render_comparison, render_replay
    from mistakebound.commands.replay.replay_file import Wanted, replay_file
    from mistakebound.commands.unusable import reasons_against

    settings = read_settings(config, sets, log)
    print_cautions(settings)
    expectations = [Expectation(text) for text in expect or ()]
    columns = given_columns(label, record_id, features, ignore, delimiter, tenant)
    wanted = Wanted(delay, epochs, shuffle, seed, add_a_feature, reevaluate)
    progress = Progress(print_message)
    watching = None if quiet else lambda state: progress.observe(state.ledgers.values())
    comparing = compare or report is not None
    with open_input_file(file) as opened:
        data = read_as(opened, form, columns, settings)
        if fit_scale:
            scale.print_scale(data, settings, max_invalid)
            return
        with open_judged(judged) as written:
            found, comparison = replay_file(
                data, settings, wanted, watching, afresh=afresh, compare=comparing, written=written
            )
    recording = isinstance(data, RecordingFile)
    advice = None if isinstance(data, RecordingFile) else data.advice()
    if not quiet:
        progress.finish(found)
    if report == "-" or json:
        sys.stdout.buffer.write(found.to_json())
    else:
        print(render_replay(found, shuffled=shuffle))
        if compare and comparison is not None:
            print(render_comparison(comparison, settings.learner.kind))
    if advice is not None:
        print_message(advice)
    if compare and comparison is None:
        print_message("--compare is for two classes; nothing was compared")
    if report is not None and report != "-":
        _write(report, found.to_json())
    counts = found.examples, found.labelled, found.rejected
    failures = list(reasons_against(*counts, max_invalid, recording=recording))
    failures += [text for one in expectations if (text := one.failure(found)) is not None]
    if failures:
        raise CommandError("\n".join(failures), ExitCode.CHECK_FAILED)


def _write(file: str, report: bytes) -> None:
    try:
        Path(file).write_bytes(report)
    except OSError as error:
        raise CommandError(f"--report: {file} cannot be written: {error.strerror}") from None
