"""`checkpoint list|show|verify`: what lies in the checkpoint folder or store."""

from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, Json, LogUrl, Sets, settings_of

if TYPE_CHECKING:
    from mistakebound.core.checkpoint import Checkpoint

checkpoint = typer.Typer(
    help="Look at checkpoints: shortcuts for the fold, never the truth.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint's path or URL.")]
ASK_S = 30.0
"""How long a store that is named on the command line has for one answer."""


@checkpoint.command("list")
def list_(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """List the checkpoints of checkpoint.url, oldest first."""
    from mistakebound.commands.output import as_json, message, table
    from mistakebound.worker.checkpoints.open_store import open_store

    rules = settings_of(config, sets, log).checkpoint
    if not rules.url:
        message("checkpoint.url is empty: no checkpoints are kept")
        return
    shelf = open_store(rules.url, rules.timeout.total_seconds())
    rows = []
    for name in shelf.names():
        whole, why = _verdict(shelf.where(name))
        rows.append((name, shelf.size(name), "valid" if whole is not None else f"invalid: {why}"))
    if json:
        as_json([{"file": name, "bytes": size, "state": state} for name, size, state in rows])
    elif rows:
        print(table(("file", "bytes", "state"), rows))
    else:
        message(f"no checkpoints in {shelf.where()}")


@checkpoint.command()
def show(file: File, top: Annotated[int, typer.Option(help="So many largest weights.")] = 10) -> None:
    """Print a checkpoint's version, positions and digest and largest weights, as JSON."""
    from mistakebound.commands.output import as_json
    from mistakebound.core.checkpoint import describe_checkpoint
    from mistakebound.core.model.model import Model
    from mistakebound.settings import Settings

    found = _read(file)
    model = Model(Settings.model_validate(found.epochs[-1].settings), len(found.updates_next))
    model.restore(found.model)
    weights = model.learner.weights()
    largest = sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))[:top]
    as_json({**describe_checkpoint(found), "digest": model.digest(), "largest_weights": dict(largest)})


@checkpoint.command()
def verify(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Paths or URLs.")],
) -> None:
    """Check that checkpoints are whole; exit 3 when one is not."""
    bad = 0
    for file in files:
        found, why = _verdict(file)
        print(f"{file}: {'valid' if found is not None else why}")
        bad += found is None
    if bad:
        raise CommandError(ExitCode.CHECK_FAILED, f"{bad} of {len(files)} cannot be used; the log still can")


def _verdict(file: str) -> "tuple[Checkpoint | None, str]":
    try:
        return _read(file), ""
    except CommandError as error:
        return None, str(error)


def _read(file: str) -> "Checkpoint":
    from mistakebound.core.checkpoint import decode_checkpoint
    from mistakebound.core.faults import BadSnapshot
    from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError, parse
    from mistakebound.worker.checkpoints.open_store import open_store
    from mistakebound.worker.checkpoints.store import split

    url, name = split(file)
    try:
        return decode_checkpoint(parse(open_store(url, ASK_S).read(name)[0]).payload)
    except ValueError as error:
        raise CommandError(ExitCode.USAGE, f"{file}: {error}") from None
    except OSError as error:
        raise CommandError(ExitCode.USAGE, f"{file} cannot be read: {error.strerror or error}") from None
    except (InvalidCheckpointError, BadSnapshot) as error:
        raise CommandError(ExitCode.CHECK_FAILED, f"{file}: {error}") from None
