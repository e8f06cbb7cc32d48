"""`replay`: a recording or labelled data through the worker's own step, with no log and no waiting."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, Json, LogUrl, Sets, settings_of
from mistakebound.commands.replay.options import Wanted

if TYPE_CHECKING:
    from mistakebound.core.step.state import State


def replay(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="What to replay; - is stdin.")],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FORM", help="recording, csv, svmlight or jsonl; else by its name."),
    ] = None,
    delay: Annotated[
        int, typer.Option("--delay", min=0, help="Labelled data: examples outstanding at each prediction.")
    ] = 0,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, metavar="T", help="Labelled data: passes over it, at most.")
    ] = 1,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Labelled data: another order in each pass.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="For --shuffle; default 0.")] = None,
    add_a_feature: Annotated[
        bool,
        typer.Option(
            "--add-a-feature",
            help="Labelled data: one private feature per example; with more passes it makes any data separable.",
        ),
    ] = False,
    fit_scale: Annotated[
        bool,
        typer.Option(
            "--fit-scale", help="Print [features.scale] as TOML, fitted on the file, and do no more."
        ),
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE|-", help="Write the report as JSON.")
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect", metavar="EXPR", help="Such as 'mistakes <= 200'; exit 3 if not; repeatable."
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Print what other rules come to on the same labelled examples; two classes."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress table.")] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Learn from a file as the worker would, and print what it came to.

    The same file with the same settings gives the same report, byte for byte.
    """
    import sys

    from mistakebound.commands.output import message
    from mistakebound.commands.progress import Progress, summary
    from mistakebound.commands.replay import render_comparison
    from mistakebound.commands.replay.expectations import Expectation
    from mistakebound.commands.replay.render_passes import told
    from mistakebound.commands.replay.source import ReplaySource, scale_of

    settings = settings_of(config, sets, log)
    expectations = [Expectation(text) for text in expect or ()]
    wanted = Wanted(delay, epochs, shuffle, seed, add_a_feature)
    content = content_of(file)
    found_source = ReplaySource(form_of(file, source, content), content, settings)
    if fit_scale:
        print(scale_of(found_source), end="")
        return
    progress = Progress(message)

    def look(state: "State") -> None:
        if not quiet:
            progress.look(state.ledgers.values())

    found, comparison = found_source.replayed(wanted, look, compare=compare or report is not None)
    if not quiet:
        progress.finish(found)
    if report == "-" or json:
        sys.stdout.buffer.write(found.to_json())
    else:
        print(summary(found))
        if found.passes:
            print(told(found, shuffled=shuffle))
        if compare and comparison is not None:
            print(render_comparison.told(comparison, settings.learner.kind))
    if compare and comparison is None:
        message("--compare is for two classes; nothing was compared")
    if report not in (None, "-"):
        _write(Path(str(report)), found.to_json())
    failures = [text for text in (one.failure(found) for one in expectations) if text is not None]
    if failures:
        raise CommandError(ExitCode.CHECK_FAILED, "\n".join(failures))


def content_of(file: str) -> bytes:
    """The file's bytes; `-` is stdin. Raises CommandError."""
    import sys

    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(ExitCode.USAGE, f"{file} cannot be read: {error.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(ExitCode.USAGE, f"--report: {path} cannot be written: {error.strerror}") from None


def form_of(file: str, source: str | None, content: bytes) -> str:
    """`recording`, or a form of labelled data: as asked for, else by content and name. Raises CommandError."""
    from mistakebound.commands.choices import chosen

    forms = ("recording", "csv", "svmlight", "jsonl")
    if source is not None:
        return chosen("--from", source, forms)
    if b'"mistakebound-recording"' in content[:200]:
        return "recording"
    endings = {".csv": "csv", ".svm": "svmlight", ".svmlight": "svmlight", ".jsonl": "jsonl"}
    form = endings.get(Path(file).suffix)
    if form is None:
        raise CommandError(ExitCode.USAGE, f"cannot tell what {file} holds; add --from {'|'.join(forms)}")
    return form
