"""`status`: what was done and what is left, read from the log itself, without a worker."""

from typing import Annotated

from typer import Option

from mistakebound.commands.options import Config, Json, LogUrl, Sets, open_log, read_log_settings


def status(
    model: Annotated[
        bool, Option("--model", help="Also fold `updates` and print the model's size and digest.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Print tallies, lag and version from the committed offsets and the newest outcomes.

    The learner is that of the epoch in the log; settings that --model needs and nothing else gives are too.
    """
    from mistakebound.commands import render_epochs
    from mistakebound.commands.committed_report import read_cut, read_lag, report_of
    from mistakebound.commands.epoch_settings import settings_in_epoch, with_costs
    from mistakebound.commands.output import print_json, render_table
    from mistakebound.commands.render_report import render_report
    from mistakebound.core.model.settings_diff import changes
    from mistakebound.core.reporting import status as reporting

    settings = read_log_settings(config, sets, log)
    with open_log(settings) as reached:
        cut = read_cut(reached)
        if model or cut.epoch is None:
            settings = settings_in_epoch(cut.epoch, config, sets, log)
        else:
            settings = with_costs(settings, cut.epoch, config, sets, log)
        found = report_of(reached, cut, settings, fold=model)
        lags = read_lag(reached)
    epoch, before, *_ = (*cut.epochs, None, None)
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
