"""`status`: what was done and what is left, read from the log itself, without a worker."""

from typing import Annotated

from typer import Option

from mistakebound.commands.options import Config, Json, LogUrl, Sets, open_log, read_settings


def status(
    model: Annotated[
        bool, Option("--model", help="Also fold `updates` and print the model's size and digest.")
    ] = False,
    schema: Annotated[
        bool, Option("--schema", help="Print the JSON Schema of --json, and of /api/status, instead.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Print tallies, lag and version from the committed offsets and the newest outcomes."""
    from mistakebound.commands import render_epochs
    from mistakebound.commands.committed_report import read_lag, read_report
    from mistakebound.commands.output import print_json, render_table
    from mistakebound.commands.render_report import render_report
    from mistakebound.core.model.settings_diff import changes
    from mistakebound.core.reporting import status as reporting
    from mistakebound.worker.epochs.epochs import newest_epochs

    if schema:
        print_json(reporting.schema())
        return
    settings = read_settings(config, sets, log)
    with open_log(settings) as reached:
        found = read_report(reached, settings, fold=model)
        lags = read_lag(reached)
        epoch, before, *_ = (*newest_epochs(reached), None, None)
    if json:
        epoch_status = None if epoch is None else reporting.epoch_status(epoch, before)
        print_json(reporting.status(found, lags, epoch_status).as_dict())
        return
    print(render_report(found))
    if epoch is not None:
        print(f"\nepoch {epoch.epoch}, from {render_epochs.render_base(epoch.base)}")
        if before is not None:
            for line in render_epochs.render_changes(changes(before.settings, epoch.settings)):
                print(f"  {line}")
    print()
    rows = [(p, both.examples, both.labels) for p, both in lags.items()]
    print(render_table(("partition", "examples behind", "labels behind"), *rows))
