"""`reset`: the next epoch, with other settings, from nothing or from an earlier version."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, WaitS, open_log, read_settings

if TYPE_CHECKING:
    from mistakebound.core.messages.schema import Base
    from mistakebound.core.reporting.report import Report
    from mistakebound.worker.epochs.reset import Plan

NONE = (
    "nothing to reset: the log holds no epoch and no work; `mistakebound run` begins the first epoch with the "
    "settings that it is given"
)


def reset(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="VERSION",
            help="Start from an earlier version: updates by partition, 12,9, or with their epoch, 1:12,9.",
        ),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Begin the epoch; without it only the plan is printed.")
    ] = False,
    wait: WaitS = 60.0,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Begin the next epoch with the settings given: forget the model, or go back to an earlier version.

    Nothing is deleted. Counts for life, waiting examples and remembered ids stay. Stop all workers first.
    """
    from mistakebound.commands.committed_report import read_report
    from mistakebound.commands.output import as_json, print_message
    from mistakebound.config.checks import require_for_run, require_learner
    from mistakebound.worker.epochs.reset import execute as begin
    from mistakebound.worker.epochs.reset import must_not_be_lost, planned

    settings = read_settings(config, sets, log)
    require_for_run(settings)
    base = None if to is None else _parse_version(to)
    with open_log(settings) as reached:
        require_learner(settings, reached.partitions)
        must_not_be_lost(reached, settings)
        plan = planned(reached, settings, base)
        if plan is None:
            print_message(NONE)
            return
        stays = read_report(reached, settings, fold=False)
        if json:
            as_json({**_as_json(plan, stays), "executed": execute})
        else:
            print(_render(plan, stays))
        if execute:
            begin(reached, settings, plan, wait)
    number = plan.begins.epoch
    print_message(
        f"epoch {number} has begun; start the workers with these settings"
        if execute
        else f"nothing was changed; with --execute epoch {number} begins"
    )


def _parse_version(text: str) -> "Base":
    """`12,9` or `1:12,9`; epoch 0 where none is named. Raises CommandError."""
    from mistakebound.core.messages.schema import Base

    epoch, colon, updates = text.rpartition(":")
    parts = [part.strip() for part in updates.split(",")]
    if not all(part.isascii() and part.isdigit() for part in ([*parts, epoch] if colon else parts)):
        raise CommandError(
            f"--to: {text!r} is not a version; write the updates of each partition, such as 12,9, or with their "
            "epoch, 1:12,9 (`mistakebound status` prints the present one)",
        )
    if colon and int(epoch) == 0:
        raise CommandError(f"--to: {text!r}: the first epoch is 1")
    return Base(int(epoch) if colon else 0, [int(part) for part in parts])


def _render(plan: "Plan", stays: "Report") -> str:
    from mistakebound.commands.output import table
    from mistakebound.commands.render_epochs import (
        render_base,
        render_changes,
        render_counts,
        render_settings,
    )

    follows, begins = plan.follows, plan.begins
    own = render_counts(plan.history.updates[follows.epoch])
    rows = [
        ("now", f"epoch {follows.epoch}, from {render_base(follows.base)}; updates by partition: {own}"),
        *[("", line) for line in render_settings(follows)],
        ("next", f"epoch {begins.epoch}, from {render_base(begins.base)}"),
        *[("changes", line) for line in render_changes(plan.changes) or ["no setting"]],
    ]
    for epoch, counts in plan.given_up().items():
        if any(counts):
            which = f"updates by partition: {render_counts(counts)}"
            rows.append(("counts no more", f"of epoch {epoch}, the last {which} (they stay in the log)"))
    rows += [
        (
            "stays",
            f"counts for life ({stays.labelled} labelled, {stays.mistakes} mistakes, {stays.updates} updates)",
        ),
        (
            "",
            f"{stays.waiting} waiting examples and {stays.parked} parked labels; remembered ids; all offsets",
        ),
        ("starts at 0", "the epoch's counts, n and clock"),
        (
            "workers",
            "stop them first: on Kafka reset refuses while others are in the group; on sqlite a running one is",
        ),
        ("", "shut out, and exits unless it has the settings of the new epoch"),
    ]
    first, *rest = rows
    return table(first, rest)


def _as_json(plan: "Plan", stays: "Report") -> dict[str, Any]:
    from msgspec import to_builtins

    follows = plan.follows
    return {
        "now": {**to_builtins(follows), "updates": list(plan.history.updates[follows.epoch])},
        "next": to_builtins(plan.begins),
        "changes": {each.key: {"before": each.before, "after": each.after} for each in plan.changes},
        "counts_no_more": {str(epoch): list(counts) for epoch, counts in plan.given_up().items()},
        "stays": {
            "labelled": stays.labelled,
            "mistakes": stays.mistakes,
            "updates": stays.updates,
            "waiting": stays.waiting,
            "parked": stays.parked,
        },
    }
