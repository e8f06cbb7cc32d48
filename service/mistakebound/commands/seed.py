"""`seed`: start the model warm from labelled data, without counting any of it."""

from typing import Annotated

import typer

from mistakebound.commands.options import Config, Json, LogUrl, Sets, opened, settings_of


def seed(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Labelled data, or a recording; - is stdin.")],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FORM", help="recording, csv, svmlight or jsonl; else by its name."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Print the plan and do nothing.")] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for the group.")
    ] = 60.0,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Learn from a file before the stream: its updates are marked as seeds, and never counted as mistakes.

    They form an epoch of their own, on which the next is based; what was learned before stays. Stop all workers
    first. No theorem speaks of a model that started warm.
    """
    from mistakebound.commands.output import as_json, message
    from mistakebound.commands.replay.replay import content_of, form_of
    from mistakebound.commands.replay.source import ReplaySource
    from mistakebound.config.checks import require_for_run, require_learner
    from mistakebound.worker.epochs import seeding
    from mistakebound.worker.epochs.reset import must_not_be_lost

    settings = settings_of(config, sets, log)
    require_for_run(settings)
    content = content_of(file)
    rows = ReplaySource(form_of(file, source, content), content, settings).labelled_rows()
    with opened(settings) as reached:
        require_learner(settings, reached.partitions)
        must_not_be_lost(reached, settings)
        plan = seeding.planned(reached, settings, rows)
        counts = [len(updates) for updates in plan.updates]
        if not dry_run:
            seeding.execute(reached, settings, plan, wait)
    if json:
        as_json(
            {
                "labelled": plan.labelled,
                "unread": plan.unread,
                "seeds": counts,
                "epoch": plan.begins.epoch,
                "executed": not dry_run,
            }
        )
    else:
        by_partition = ", ".join(map(str, counts))
        print(
            f"{sum(counts)} seeds (by partition: {by_partition}) from {plan.labelled} labelled examples; "
            f"{plan.unread} could not be used"
        )
    message(
        f"nothing was changed: --dry-run; epoch {plan.begins.epoch} would go on from them"
        if dry_run
        else f"epoch {plan.begins.epoch} goes on from them; start the workers"
    )
