"""`export`: the model's weights for other programs, such as scikit-learn."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, LogUrl, Sets, load, open_log, read_log_settings
from mistakebound.commands.output import print_form, print_message
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.core.model.model import Model
    from mistakebound.core.reporting.linear_form import LinearForm


def export(
    checkpoint: Annotated[
        str | None,
        Argument(
            metavar="CHECKPOINT",
            help="A path, URL, or name as `checkpoint list` prints it; default what the log holds now.",
        ),
    ] = None,
    form: Annotated[
        Literal["json", "npz"], Option("--format", help="JSON, or numpy's arrays by name.")
    ] = "json",
    out: Annotated[str, Option("--out", metavar="FILE|-", help="Where to write; - is stdout.")] = "-",
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Write the weights, of two classes or more, so that others compute the scores that the worker would publish.

    Only of learners whose score is a sum over the features. Needs no worker and changes nothing.
    """
    from mistakebound.core.reporting.linear_form import NotLinear, linear_form

    model = (
        _of_log(config, sets, log) if checkpoint is None else _of_checkpoint(checkpoint, config, sets, log)
    )
    try:
        found = linear_form(model)
    except NotLinear as error:
        raise CommandError(f"this model cannot be exported: {error}", ExitCode.CHECK_FAILED) from None
    if form == "npz":
        _write(out, _as_npz(found))
    elif out == "-":
        print_form(found)
    else:
        _write(out, _as_json(found))
    rows, columns = len(found.coef), len(found.features)
    print_message(
        f"{rows} x {columns} weights of epoch {found.epoch}, updates {', '.join(map(str, found.updates))}"
    )


def _of_log(config: Path | None, sets: list[str] | None, log: str | None) -> "Model":
    """With all that was committed, and the labels known by then: an average goes on with each of them."""
    from mistakebound.commands.committed_report import fold_cut, read_cut
    from mistakebound.commands.epoch_settings import settings_in_epoch

    with open_log(read_log_settings(config, sets, log)) as reached:
        cut = read_cut(reached)
        if cut.epoch is None:
            raise CommandError(
                "the log holds no epoch, so there is no model: nothing was learned yet", ExitCode.CHECK_FAILED
            )
        fold, cut = fold_cut(reached, cut, settings_in_epoch(cut.epoch, config, sets, log))
        for p, of_epoch in enumerate(cut.of_epoch()):
            if of_epoch is not None:
                fold.model.knows(p, of_epoch.judged)
        return fold.model


def _of_checkpoint(file: str, config: Path | None, sets: list[str] | None, log: str | None) -> "Model":
    from mistakebound.commands.checkpoint_files import model_of, place_of, read_checkpoint
    from mistakebound.core.faults import BadSnapshot

    try:
        return model_of(read_checkpoint(place_of(file, load(config, sets, log))))
    except BadSnapshot as error:
        raise CommandError(f"{file}: {error}", ExitCode.CHECK_FAILED) from None


def _as_json(found: "LinearForm") -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _as_npz(found: "LinearForm") -> bytes:
    """Arrays classes [K], features [n], coef [1 or K, n], intercept [1 or K]; all else as JSON in `about`. No pickle."""
    import io
    import json

    import msgspec
    import numpy

    if len({type(one) for one in found.classes}) > 1:
        raise CommandError("the classes are of several types, which an array cannot hold: use --format json")
    if any(name.endswith("\0") for name in found.features):
        raise CommandError("a feature's name ends in U+0000, which an array drops: use --format json")
    about: dict[str, Any] = msgspec.to_builtins(found)
    arrays: dict[str, Any] = {name: about.pop(name) for name in ("classes", "features", "coef", "intercept")}
    shape = (len(found.coef), len(found.features))
    content = io.BytesIO()
    numpy.savez(
        content,
        classes=numpy.array(arrays["classes"]),
        features=numpy.array(arrays["features"], dtype=str),
        coef=numpy.array(arrays["coef"], dtype=float).reshape(shape),
        intercept=numpy.array(arrays["intercept"], dtype=float),
        about=numpy.array(json.dumps(about)),
    )
    return content.getvalue()


def _write(out: str, content: bytes) -> None:
    if out == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        Path(out).write_bytes(content)
    except OSError as error:
        raise CommandError(f"--out: {out} cannot be written: {error.strerror}") from None
