"""`reset`: begin the next epoch, with other settings, from nothing or from an earlier version."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import (
    Config,
    Json,
    LogUrl,
    Sets,
    WaitS,
    open_log,
    print_cautions,
    read_log_settings,
)

if TYPE_CHECKING:
    from mistakebound.core.messages.schema import Base


def reset(
    to: Annotated[
        str | None,
        Option(
            "--to",
            metavar="VERSION",
            help="Start from an earlier version: updates by partition, 12,9, or with their epoch, 1:12,9.",
        ),
    ] = None,
    execute: Annotated[
        bool, Option("--execute", help="Begin the epoch; without it only the plan is printed.")
    ] = False,
    same_records: Annotated[
        bool,
        Option(
            "--same-records",
            help="The inputs are other topics now, and hold the same records at the same offsets.",
        ),
    ] = False,
    wait: WaitS = 60.0,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Begin the next epoch with these settings: forget the model, or go back to an earlier version.

    Settings that could not run a worker (without labels.max_delay) only say what changes: the rest stays as it is.
    Nothing is deleted: counts for life, waiting examples and remembered ids stay. Stop all workers first.
    """
    from mistakebound.commands.committed_report import read_report
    from mistakebound.commands.epoch_settings import settings_of_next
    from mistakebound.commands.output import print_form, print_message
    from mistakebound.commands.render_reset import render_reset, reset_form
    from mistakebound.config.checks import require_for_run, require_learner
    from mistakebound.worker.epochs.epochs import newest_epochs
    from mistakebound.worker.epochs.reset import execute as begin
    from mistakebound.worker.epochs.reset import must_not_be_lost, planned

    settings = read_log_settings(config, sets, log)
    base = None if to is None else _parse_version(to)
    with open_log(settings) as reached:
        settings = settings_of_next(next(iter(newest_epochs(reached)), None), config, sets, log)
        require_for_run(settings)
        print_cautions(settings)
        require_learner(settings, reached.partitions)
        must_not_be_lost(reached, settings, reached.group_positions())
        plan = planned(reached, settings, base, same_records=same_records)
        if plan is None:
            print_message(
                "nothing to reset: the log holds no epoch and no work; `mistakebound run` begins the first epoch"
            )
            return
        stays = read_report(reached, settings, fold=False)
        if json:
            print_form(reset_form(plan, stays, executed=execute))
        else:
            print(render_reset(plan, stays))
        if execute:
            begin(reached, settings, plan, wait)
    number = plan.begins.epoch
    print_message(
        f"epoch {number} has begun; start the workers with these settings"
        if execute
        else f"nothing was changed; with --execute epoch {number} begins"
    )


def _parse_version(text: str) -> "Base":
    """The version `12,9` or `1:12,9`; its epoch is 0 where the text names none. Raises CommandError."""
    from mistakebound.core.messages.schema import Base

    epoch, colon, updates = text.rpartition(":")
    parts = [part.strip() for part in updates.split(",")]
    if not all(part.isascii() and part.isdigit() for part in ([*parts, epoch] if colon else parts)):
        raise CommandError(
            f"--to: {text!r} is not a version; write the updates of each partition, such as 12,9, or with their "
            "epoch, 1:12,9 (`mistakebound status` prints the present one)"
        )
    if colon and int(epoch) == 0:
        raise CommandError(f"--to: {text!r}: the first epoch is 1")
    return Base(int(epoch) if colon else 0, [int(part) for part in parts])
