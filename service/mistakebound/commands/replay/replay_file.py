"""Replay a recording or labelled data with the worker's own step, and compare it with other rules."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

from mistakebound.commands.data_files import Data
from mistakebound.commands.errors import CommandError
from mistakebound.commands.recordings import RecordingFile
from mistakebound.config.checks import require_learner
from mistakebound.core.messages.inputs import declared
from mistakebound.core.model.model import Model
from mistakebound.core.replay import comparators
from mistakebound.core.replay.applied import Applied
from mistakebound.core.replay.passes import replay_passes
from mistakebound.core.replay.private_features import WithPrivateFeatures
from mistakebound.core.replay.rejections import Rejections
from mistakebound.core.replay.replay import replay_records, report_of
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
    compare: bool = False,
) -> tuple[Report, comparators.Comparison | None]:
    """Learn from a file's data as the worker would, and `compare` with other rules where there are two classes.

    Of several passes, the first is compared. Raises CommandError, ConfigurationError, RecordingError.
    """
    if wanted.seed is not None and not wanted.shuffle:
        raise CommandError("--seed is for --shuffle; add it")
    two = len(declared(settings.labels)) == 2
    applied = Applied(Model(settings, 1)) if compare and two else None
    taken = None if applied is None else applied.see
    if isinstance(data, RecordingFile):
        if given := ", ".join(wanted.given()):
            raise CommandError(f"{given}: for labelled data only; a recording has its own order and delays")
        header, records = data.begin()
        require_learner(settings, header.partitions)
        rejections = Rejections()

        def see(step: Step) -> None:
            rejections.see(step)
            if taken is not None:
                taken(step)

        state = replay_records(records, settings, header.partitions, progress, see)
        report = report_of(state, rejections.found())
    else:
        done = replay_passes(
            WithPrivateFeatures(data) if wanted.add_a_feature else data,
            settings,
            settings.log.partitions or 1,
            wanted.delay,
            most=wanted.epochs,
            seed=(wanted.seed or 0) if wanted.shuffle else None,
            progress=progress,
            taken=taken,
        )
        report = report_of(done.state, done.rejected)
        if wanted.epochs > 1 or wanted.shuffle:
            report = replace(report, passes=done.passes, converged=done.converged, cycle=done.cycle)
    if applied is None:
        return report, None
    comparison = comparators.compare(applied.judged)
    return replace(report, comparators=asdict(comparison)), comparison
