"""`checkpoint list|show|verify`: what lies in the checkpoint store."""

from typing import Annotated

import typer

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, read_settings
from mistakebound.exit_codes import ExitCode

checkpoint = typer.Typer(
    help="Look at checkpoints: shortcuts for the fold, never the truth.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@checkpoint.command("list")
def list_(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """List the checkpoints of checkpoint.url, oldest first."""
    from mistakebound.commands.checkpoint_files import open_own_store
    from mistakebound.commands.output import as_json, print_message, table

    store = open_own_store(read_settings(config, sets, log).checkpoint)
    if store is None:
        print_message("checkpoint.url is empty: no checkpoints are kept")
        return
    rows = []
    for name in store.names():
        wrong = _find_wrong(store.where(name))
        rows.append((name, store.size(name), "valid" if wrong is None else f"invalid: {wrong}"))
    if json:
        as_json([{"file": name, "bytes": size, "state": state} for name, size, state in rows])
    elif rows:
        print(table(("file", "bytes", "state"), rows))
    else:
        print_message(f"no checkpoints in {store.where()}")


@checkpoint.command()
def show(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint's path or URL.")],
    top: Annotated[int, typer.Option(help="How many of the largest weights to print.")] = 10,
) -> None:
    """Print a checkpoint's version, positions, digest and largest weights, as JSON."""
    from mistakebound.commands.checkpoint_files import read_checkpoint
    from mistakebound.commands.output import as_json
    from mistakebound.core.checkpoint import describe_checkpoint
    from mistakebound.core.faults import BadSnapshot
    from mistakebound.core.model.model import Model
    from mistakebound.settings import Settings

    try:
        found = read_checkpoint(file)
    except BadSnapshot as error:
        raise CommandError(f"{file}: {error}", ExitCode.CHECK_FAILED) from None
    model = Model(Settings.model_validate(found.epochs[-1].settings), len(found.updates_next))
    model.restore(found.model)
    weights = model.learner.weights()
    largest = sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))[:top]
    as_json({**describe_checkpoint(found), "digest": model.digest(), "largest_weights": dict(largest)})


@checkpoint.command()
def verify(files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Paths or URLs.")]) -> None:
    """Check that checkpoints are whole; exit 3 when one is not."""
    bad = 0
    for file in files:
        wrong = _find_wrong(file)
        print(f"{file}: {wrong or 'valid'}")
        bad += wrong is not None
    if bad:
        raise CommandError(f"{bad} of {len(files)} cannot be used; the log still can", ExitCode.CHECK_FAILED)


def _find_wrong(file: str) -> str | None:
    """Why the checkpoint cannot be used; None where it can."""
    from mistakebound.commands.checkpoint_files import read_checkpoint
    from mistakebound.core.faults import BadSnapshot

    try:
        read_checkpoint(file)
    except (CommandError, BadSnapshot) as error:
        return str(error)
    return None
