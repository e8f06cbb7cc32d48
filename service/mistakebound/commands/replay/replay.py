"""`replay`: run the worker's own step over a recording or labelled data, with no log and no waiting."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import FormOption, choose_form, read_input
from mistakebound.commands.options import Config, Json, LogUrl, Sets, read_settings
from mistakebound.exit_codes import ExitCode


def replay(
    file: Annotated[str, Argument(metavar="FILE|-", help="What to replay; - is stdin.")],
    form: FormOption = None,
    delay: Annotated[
        int, Option("--delay", min=0, help="Labelled data: examples outstanding at each prediction.")
    ] = 0,
    epochs: Annotated[
        int, Option("--epochs", min=1, metavar="T", help="Labelled data: passes over it, at most.")
    ] = 1,
    shuffle: Annotated[bool, Option("--shuffle", help="Labelled data: another order in each pass.")] = False,
    seed: Annotated[int | None, Option("--seed", min=0, help="Seed of --shuffle; default 0.")] = None,
    add_a_feature: Annotated[
        bool,
        Option(
            "--add-a-feature",
            help="Labelled data: give each example a feature of its own; with more passes any data is separable.",
        ),
    ] = False,
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

    The same file with the same settings gives the same report, byte for byte.
    """
    import sys

    from mistakebound.commands.output import print_message
    from mistakebound.commands.progress import Progress
    from mistakebound.commands.render_report import render_report
    from mistakebound.commands.replay import fit_scale as scale
    from mistakebound.commands.replay.expectations import Expectation
    from mistakebound.commands.replay.render import render_comparison, render_passes
    from mistakebound.commands.replay.replay_file import Wanted, replay_file

    settings = read_settings(config, sets, log)
    expectations = [Expectation(text) for text in expect or ()]
    wanted = Wanted(delay, epochs, shuffle, seed, add_a_feature)
    content = read_input(file)
    form = choose_form(file, form, content)
    if fit_scale:
        print(scale.fit_scale(form, content, settings), end="")
        return
    progress = Progress(print_message)
    watching = None if quiet else lambda state: progress.observe(state.ledgers.values())
    comparing = compare or report is not None
    found, comparison = replay_file(
        form, content, settings, wanted, watching, afresh=afresh, compare=comparing
    )
    if not quiet:
        progress.finish(found)
    if report == "-" or json:
        sys.stdout.buffer.write(found.to_json())
    else:
        print(render_report(found))
        if found.passes:
            print(render_passes(found, shuffled=shuffle))
        if compare and comparison is not None:
            print(render_comparison(comparison, settings.learner.kind))
    if compare and comparison is None:
        print_message("--compare is for two classes; nothing was compared")
    if report is not None and report != "-":
        try:
            Path(report).write_bytes(found.to_json())
        except OSError as error:
            raise CommandError(f"--report: {report} cannot be written: {error.strerror}") from None
    if failures := [text for one in expectations if (text := one.failure(found)) is not None]:
        raise CommandError("\n".join(failures), ExitCode.CHECK_FAILED)
