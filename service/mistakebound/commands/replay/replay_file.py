"""A recording or labelled data through the worker's own step, and beside other rules."""

from collections.abc import Callable
from dataclasses import asdict, replace

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import Form
from mistakebound.commands.labelled_files import read_labelled
from mistakebound.commands.replay.options import Wanted
from mistakebound.config.checks import require_learner
from mistakebound.core.messages.inputs import declared
from mistakebound.core.model.model import Model
from mistakebound.core.replay import comparators
from mistakebound.core.replay.applied import Applied
from mistakebound.core.replay.passes import replay_passes
from mistakebound.core.replay.private_features import with_private_features
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.replay import replay_records, report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings

_Taken = Callable[[Step], None] | None


def replay_file(
    form: Form,
    content: bytes,
    settings: Settings,
    wanted: Wanted,
    progress: Callable[[State], None],
    *,
    compare: bool = False,
) -> tuple[Report, comparators.Comparison | None]:
    """Learn from a file as the worker would, and `compare` with other rules where there are two classes.

    Of several passes, the first is compared. Raises CommandError, ConfigurationError, RecordingError.
    """
    if wanted.seed is not None and not wanted.shuffle:
        raise CommandError("--seed is for --shuffle; add it")
    comparable = compare and len(declared(settings.labels)) == 2
    applied = Applied(Model(settings, 1)) if comparable else None
    taken = None if applied is None else applied.see
    if form == "recording":
        report = _replay_recording(content, settings, wanted, progress, taken)
    else:
        report = _replay_labelled(form, content, settings, wanted, progress, taken)
    if applied is None:
        return report, None
    comparison = comparators.compare(applied.judged)
    return replace(report, comparators=asdict(comparison)), comparison


def _replay_labelled(
    form: Form,
    content: bytes,
    settings: Settings,
    wanted: Wanted,
    progress: Callable[[State], None],
    taken: _Taken,
) -> Report:
    rows = read_labelled(form, content)
    if wanted.add_a_feature:
        rows = with_private_features(rows)
    done = replay_passes(
        rows,
        settings,
        settings.log.partitions or 1,
        wanted.delay,
        most=wanted.epochs,
        seed=wanted.order,
        progress=progress,
        taken=taken,
    )
    report = report_of(done.state)
    if wanted.passes:
        report = replace(report, passes=done.passes, converged=done.converged, cycle=done.cycle)
    return report


def _replay_recording(
    content: bytes, settings: Settings, wanted: Wanted, progress: Callable[[State], None], taken: _Taken
) -> Report:
    if given := ", ".join(wanted.given()):
        raise CommandError(f"{given}: for labelled data only; a recording has its own order and delays")
    header, records = begin(content.splitlines(keepends=True))
    require_learner(settings, header.partitions)
    return report_of(replay_records(records, settings, header.partitions, progress, taken))
