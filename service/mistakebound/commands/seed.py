"""`seed`: start the model warm from labelled data, without counting any of it."""

from typing import Annotated

from typer import Argument

from mistakebound.commands.input_files import FormOption, choose_form, read_input
from mistakebound.commands.options import Config, DryRun, Json, LogUrl, Sets, WaitS, open_log, read_settings
from mistakebound.commands.unusable import MaxInvalid


def seed(
    file: Annotated[str, Argument(metavar="FILE|-", help="Labelled data, or a recording; - is stdin.")],
    form: FormOption = None,
    max_invalid: MaxInvalid = None,
    dry_run: DryRun = False,
    wait: WaitS = 60.0,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Learn from a file before the stream: the updates are marked as seeds, and never count as mistakes.

    They form an epoch of their own, on which the next one is based; what was learned before stays. Stop all
    workers first. No theorem holds for a model that started warm. Where nothing can be learned from, or too much is
    rejected, nothing is written and the exit code is 3.
    """
    from dataclasses import asdict

    from mistakebound.commands.errors import CommandError
    from mistakebound.commands.labelled_files import read_rows
    from mistakebound.commands.output import print_json, print_message
    from mistakebound.commands.render_report import render_rejected
    from mistakebound.commands.unusable import reasons_against
    from mistakebound.config.checks import require_for_run, require_learner
    from mistakebound.core.replay.rejections import Rejections
    from mistakebound.exit_codes import ExitCode
    from mistakebound.worker.epochs import seeding
    from mistakebound.worker.epochs.reset import must_not_be_lost

    settings = read_settings(config, sets, log)
    require_for_run(settings)
    content = read_input(file)
    form = choose_form(file, form, content)
    of_recording = Rejections()
    rows = read_rows(form, content, settings, of_recording.see)
    with open_log(settings) as reached:
        require_learner(settings, reached.partitions)
        must_not_be_lost(reached, settings, reached.group_positions())
        plan = seeding.planned(reached, settings, rows)
        counts = [len(updates) for updates in plan.updates]
        rejected = (*of_recording.found(), *plan.rejected)
        examples = plan.labelled + plan.unread
        refused = list(
            reasons_against(examples, plan.labelled, rejected, max_invalid, recording=form == "recording")
        )
        executed = not dry_run and not refused
        if executed:
            seeding.execute(reached, settings, plan, wait)
    if json:
        found = {"labelled": plan.labelled, "unread": plan.unread, "seeds": counts}
        told = {
            "epoch": plan.begins.epoch,
            "executed": executed,
            "rejected": [asdict(one) for one in rejected],
        }
        print_json({**found, **told})
    else:
        print(
            f"{sum(counts)} seeds (by partition: {', '.join(map(str, counts))}) from {plan.labelled} labelled examples; "
            f"{plan.unread} could not be used"
        )
        for one in rejected:
            print(f"rejected: {render_rejected(one)}")
    if refused:
        raise CommandError("\n".join([*refused, "nothing was written"]), ExitCode.CHECK_FAILED)
    print_message(
        f"nothing was changed: --dry-run; epoch {plan.begins.epoch} would go on from them"
        if dry_run
        else f"epoch {plan.begins.epoch} goes on from them; start the workers"
    )
