"""`seed`: start the model warm from labelled data, without counting any of it."""

from typing import Annotated

from typer import Argument

from mistakebound.commands.input_files import FormOption, open_input_file
from mistakebound.commands.labelled_files.columns import (
    Delimiter,
    FeatureColumns,
    IdColumn,
    IgnoredColumns,
    LabelColumn,
    TenantColumn,
    given_columns,
)
from mistakebound.commands.options import (
    Config,
    DryRun,
    Json,
    LogUrl,
    Sets,
    WaitS,
    open_log,
    read_log_settings,
)
from mistakebound.commands.unusable import MaxInvalid


def seed(
    file: Annotated[str, Argument(metavar="FILE|-", help="Labelled data, or a recording; - is stdin.")],
    form: FormOption = None,
    label: LabelColumn = None,
    record_id: IdColumn = None,
    features: FeatureColumns = None,
    ignore: IgnoredColumns = None,
    delimiter: Delimiter = None,
    tenant: TenantColumn = None,
    max_invalid: MaxInvalid = None,
    dry_run: DryRun = False,
    wait: WaitS = 60.0,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Learn from a file before the stream: the updates are marked as seeds, and never count as mistakes.

    They form an epoch of their own, on which the next one is based; what was learned before stays. Settings that the
    log's epoch fixed need not be given again. Stop all workers first. No theorem holds for a model that started warm. Where nothing can be learned from, or too much is
    rejected, nothing is written and the exit code is 3.
    """
    from mistakebound.commands.data_files import labelled_rows, read_as
    from mistakebound.commands.epoch_settings import settings_in_epoch
    from mistakebound.commands.errors import CommandError
    from mistakebound.commands.json_forms import Seeded
    from mistakebound.commands.output import number_of, print_form, print_message
    from mistakebound.commands.recordings import RecordingFile
    from mistakebound.commands.render_report import render_rejected
    from mistakebound.commands.unusable import reasons_against
    from mistakebound.config.checks import require_for_run, require_learner
    from mistakebound.core.replay.rejections import Rejections
    from mistakebound.exit_codes import ExitCode
    from mistakebound.worker.epochs import seeding
    from mistakebound.worker.epochs.epochs import newest_epochs
    from mistakebound.worker.epochs.reset import must_not_be_lost

    settings = read_log_settings(config, sets, log)
    columns = given_columns(label, record_id, features, ignore, delimiter, tenant)
    of_recording = Rejections()
    with open_input_file(file) as opened, open_log(settings) as reached:
        settings = settings_in_epoch(next(iter(newest_epochs(reached)), None), config, sets, log)
        require_for_run(settings)
        data = read_as(opened, form, columns, settings)
        require_learner(settings, reached.partitions)
        must_not_be_lost(reached, settings, reached.group_positions())
        plan = seeding.planned(reached, settings, labelled_rows(data, settings, of_recording.see))
        recording = isinstance(data, RecordingFile)
        advice = None if isinstance(data, RecordingFile) else data.advice()
        counts = [len(updates) for updates in plan.updates]
        rejected = (*of_recording.found(), *plan.rejected)
        examples = plan.labelled + plan.unread
        counted = examples, plan.labelled, rejected
        refused = list(reasons_against(*counted, max_invalid, recording=recording))
        executed = not dry_run and not refused
        if executed:
            seeding.execute(reached, settings, plan, wait)
    if json:
        epoch = plan.begins.epoch
        print_form(Seeded(plan.labelled, plan.unread, counts, epoch, executed, list(rejected)))
    else:
        print(
            f"{number_of(sum(counts), 'seed')} (by partition: {', '.join(map(str, counts))}) "
            f"from {number_of(plan.labelled, 'labelled example')}; {plan.unread} could not be used"
        )
        for one in rejected:
            print(f"rejected: {render_rejected(one)}")
    if advice is not None:
        print_message(advice)
    if refused:
        raise CommandError("\n".join([*refused, "nothing was written"]), ExitCode.CHECK_FAILED)
    print_message(
        f"nothing was changed: --dry-run; epoch {plan.begins.epoch} would go on from them"
        if dry_run
        else f"epoch {plan.begins.epoch} goes on from them; start the workers"
    )
