"""Replay a recording or labelled data with the worker's own step, and compare it with other rules."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

from mistakebound.commands.data_files import Data
from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import number_of, print_message
from mistakebound.commands.recordings import RecordingFile
from mistakebound.commands.registry import schemas_named_by
from mistakebound.commands.replay.judged_file import JudgedFile
from mistakebound.config.checks import require_learner
from mistakebound.core.messages.columns import idle
from mistakebound.core.messages.inputs import declared
from mistakebound.core.model.model import Model
from mistakebound.core.replay import comparators
from mistakebound.core.replay.applied import Applied
from mistakebound.core.replay.passes import Rows, replay_passes
from mistakebound.core.replay.plan import Plan, carry_out, planned, report_as
from mistakebound.core.replay.private_features import WithPrivateFeatures
from mistakebound.core.replay.recorded import Recorded
from mistakebound.core.replay.reevaluation import reevaluate
from mistakebound.core.replay.rejections import Rejections
from mistakebound.core.replay.replay import report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings


class Wanted(NamedTuple):
    """What was asked to be done with labelled data; none of it applies to a recording."""

    delay: int = 0
    epochs: int = 1
    shuffle: bool = False
    seed: int | None = None
    add_a_feature: bool = False
    reevaluate: int = 0

    def given(self) -> Iterator[str]:
        """The options that differ from their default, as they are typed."""
        for name, default in self._field_defaults.items():
            if getattr(self, name) != default:
                yield "--" + name.replace("_", "-")


def replay_file(
    data: Data,
    settings: Settings,
    wanted: Wanted,
    progress: Callable[[State], None] | None,
    *,
    afresh: bool = False,
    compare: bool = False,
    written: JudgedFile | None = None,
) -> tuple[Report, comparators.Comparison | None]:
    """Learn from a file's data as the worker would, and `compare` with other rules where there are two classes.

    A recording is repeated as recorded, or run `afresh`; stderr says which. Of several passes, the first is compared,
    and `written` is shown its steps.
    Raises CommandError, ConfigurationError, RecordingError, NotAsRecorded.
    """
    if wanted.reevaluate and (wanted.epochs > 1 or wanted.shuffle):
        raise CommandError(
            "--reevaluate is for one pass in the data's order; leave out --epochs and --shuffle"
        )
    if wanted.seed is not None and not wanted.shuffle:
        raise CommandError("--seed is for --shuffle; add it")
    if isinstance(data, RecordingFile):
        if given := ", ".join(wanted.given()):
            raise CommandError(f"{given}: for labelled data only; a recording has its own order and delays")
        header, records = data.begin()
        recorded, rejections = Recorded(records, header.partitions), Rejections()
        plan = planned(recorded, settings, afresh=afresh)
        require_learner(plan.settings, header.partitions)
        print_message(_tell(plan))
        applied = _applied(plan.settings, compare=compare)
        seen = _seen(plan.settings, applied, written)

        def see(step: Step) -> None:
            rejections.see(step)
            seen(step)

        schemas = (
            {}
            if plan.afresh is None
            else schemas_named_by(recorded.peek_inputs(), plan.settings, recorded.schemas())
        )
        state = carry_out(recorded, plan, progress, see, schemas)
        if plan.afresh is None and recorded.left:
            print_message(
                f"left out: {number_of(recorded.left, 'input record')} that the worker had not come to"
            )
        report = report_as(plan, report_of(state, rejections.found()))
    else:
        if afresh:
            raise CommandError("--afresh is for a recording: labelled data is always run afresh")
        applied = _applied(settings, compare=compare)
        rows = _with_private_features(data, settings) if wanted.add_a_feature else data
        partitions = settings.log.partitions or 1
        done = replay_passes(
            rows,
            settings,
            partitions,
            wanted.delay,
            most=wanted.epochs,
            seed=(wanted.seed or 0) if wanted.shuffle else None,
            progress=progress,
            taken=_seen(settings, applied, written),
        )
        report = report_of(done.state, done.rejected)
        _warn_of_idle_patterns(done.state)
        if wanted.reevaluate:
            again = reevaluate(rows, settings, partitions, wanted.delay, wanted.reevaluate)
            report = replace(report, reevaluation=again)
        if wanted.epochs > 1 or wanted.shuffle:
            report = replace(report, passes=done.passes, converged=done.converged, cycle=done.cycle)
    if applied is None:
        return report, None
    comparison = comparators.compare(applied.judged)
    return replace(report, comparators=asdict(comparison)), comparison


def _with_private_features(data: Rows, settings: Settings) -> Rows:
    if settings.features.include is not None:
        raise CommandError("--add-a-feature: features.include would leave it out; leave one of the two out")
    return WithPrivateFeatures(data)


def _warn_of_idle_patterns(state: State) -> None:
    columns, features = state.model.reader.columns, state.settings.features
    for pattern in sorted(() if columns is None else columns.idle):
        print_message(f"warning: {idle(pattern, features)}")


def _applied(settings: Settings, *, compare: bool) -> Applied | None:
    """What keeps the judged examples, where they will be compared: two classes only."""
    return Applied(Model(settings, 1)) if compare and len(declared(settings.labels)) == 2 else None


def _seen(settings: Settings, applied: Applied | None, written: JudgedFile | None) -> Callable[[Step], None]:
    """Shows each step to those that were asked for."""
    if written is not None:
        written.begin(settings)
    asked = [each.see for each in (applied, written) if each is not None]

    def see(step: Step) -> None:
        for each in asked:
            each(step)

    return see


def _tell(plan: Plan) -> str:
    """How a recording is replayed, and with whose settings."""
    how = "replayed as recorded" if plan.afresh is None else f"run afresh, not as recorded: {plan.afresh}"
    return (
        how + "; learner, features, labels and messages are the recording's where not given" * plan.recorded
    )
