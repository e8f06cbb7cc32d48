"""`checkpoint list|show|verify`: what the checkpoint store holds."""

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Argument, Option

from mistakebound.commands.app import group
from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, load
from mistakebound.exit_codes import ExitCode

VALID, INVALID = "valid", "invalid: "

checkpoint = group("Look at checkpoints. They only save time: the log holds the truth.")


@checkpoint.command("list")
def list_(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """List the checkpoints of checkpoint.url, oldest first."""
    from mistakebound.commands.checkpoint_files import store_to_look_at
    from mistakebound.commands.json_forms import StoredFile
    from mistakebound.commands.output import print_form, print_message, render_table

    store = store_to_look_at(load(config, sets, log))
    if store is None:
        print_message("checkpoint.url is empty: checkpoints are not kept")
        return
    rows = [(name, store.size(name), _judge(store.where(name))) for name in store.names()]
    if json:
        print_form([StoredFile(*row) for row in rows])
    elif rows:
        print(render_table(("file", "bytes", "state"), *rows))
    else:
        print_message(f"no checkpoints in {store.where()}")


@checkpoint.command()
def show(
    file: Annotated[
        str,
        Argument(metavar="FILE", help="A checkpoint's path, URL, or name as `checkpoint list` prints it."),
    ],
    top: Annotated[int, Option("--top", metavar="N", help="How many of the largest weights to print.")] = 10,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Print a checkpoint's version, positions, digest and largest weights, as JSON.

    An averaged learner predicts with averages of its weights: they are printed beside the plain ones, which the digest is of.
    """
    from mistakebound.commands.checkpoint_files import model_of, place_of, read_checkpoint
    from mistakebound.commands.output import print_json
    from mistakebound.core.checkpoint_content import describe_checkpoint
    from mistakebound.core.faults import BadSnapshot

    try:
        found = read_checkpoint(place_of(file, load(config, sets, log)))
    except BadSnapshot as error:
        raise CommandError(f"{file}: {error}", ExitCode.CHECK_FAILED) from None
    model = model_of(found)
    shown = {"largest_weights": _largest(model.learner.weights(), top)}
    if (averages := model.kind.scores_with) is not None:
        shown["largest_averaged_weights"] = _largest(averages(model.learner, sum(model.clock)), top)
    of_model = {"digest": model.digest(), "predicts_with": list(shown)[-1], **shown}
    print_json({**describe_checkpoint(found), **of_model})


def _largest(weights: Mapping[str, Any], top: int) -> dict[str, Any]:
    return dict(sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))[:top])


@checkpoint.command()
def verify(
    files: Annotated[
        list[str], Argument(metavar="FILE", help="Paths, URLs, or names as `checkpoint list` prints them.")
    ],
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Check that checkpoints are whole; exit 3 when one is not."""
    from mistakebound.commands.checkpoint_files import place_of

    loaded = load(config, sets, log)
    bad = 0
    for file in files:
        state = _judge(place_of(file, loaded))
        print(f"{file}: {state.removeprefix(INVALID)}")
        bad += state != VALID
    if bad:
        raise CommandError(f"{bad} of {len(files)} cannot be used; the log still can", ExitCode.CHECK_FAILED)


def _judge(file: str) -> str:
    """VALID, or INVALID and why the checkpoint cannot be used."""
    from mistakebound.commands.checkpoint_files import read_checkpoint
    from mistakebound.core.faults import BadSnapshot

    try:
        read_checkpoint(file)
    except (CommandError, BadSnapshot) as error:
        return f"{INVALID}{error}"
    return VALID
