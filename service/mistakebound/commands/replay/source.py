"""A file to replay, a recording or labelled data: through the worker's step, or only looked at for its scale."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.labelled_files import READERS, text_lines
from mistakebound.commands.output import message
from mistakebound.commands.replay.options import Wanted
from mistakebound.config.checks import require_learner
from mistakebound.config.keys import shown, toml_key
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages import features
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import InputReader, declared
from mistakebound.core.messages.schema import encode
from mistakebound.core.model.model import Model
from mistakebound.core.replay.applied import Applied, AppliedRows
from mistakebound.core.replay.comparators import Comparison
from mistakebound.core.replay.comparators import compare as comparing
from mistakebound.core.replay.passes import replay_passes
from mistakebound.core.replay.private_features import with_private_features
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.replay import Row, replay_records, report_of
from mistakebound.core.replay.scaling import fitted
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import FeatureSettings, LearnerSettings, Settings


class ReplaySource(NamedTuple):
    """`form`: recording, or one of `labelled.READERS`."""

    form: str
    content: bytes
    settings: Settings

    def rows(self) -> list[Row]:
        """Labelled data's rows. Raises CommandError, naming the line."""
        return list(READERS[self.form](text_lines(self.content)))

    def labelled_rows(self) -> Iterable[Row]:
        """Labelled data, or what a recording's labels were applied to, in the order applied."""
        if self.form != "recording":
            return self.rows()
        header, records = begin(self.content.splitlines(keepends=True))
        rows = AppliedRows()
        # A perceptron stands in for the learner: which labels are applied does not depend on it.
        plain = self.settings.model_copy(update={"learner": LearnerSettings(kind="perceptron")})
        replay_records(records, plain, header.partitions, taken=rows.see)
        return rows.rows

    def replayed(
        self, wanted: Wanted, progress: Callable[[State], None], *, compare: bool = False
    ) -> tuple[Report, Comparison | None]:
        """Learn from it as the worker would, and `compare` with other rules where there are two classes.

        Of several passes, the first is compared. Raises CommandError, ConfigurationError, RecordingError.
        """
        if wanted.seed is not None and not wanted.shuffle:
            raise CommandError(ExitCode.USAGE, "--seed is for --shuffle; add it")
        comparable = compare and len(declared(self.settings.labels)) == 2
        applied = Applied(Model(self.settings, 1)) if comparable else None
        taken = None if applied is None else applied.see
        replayed = self._recording if self.form == "recording" else self._labelled
        report = replayed(wanted, progress, taken)
        if applied is None:
            return report, None
        comparison = comparing(applied.judged)
        return replace(report, comparators=asdict(comparison)), comparison

    def _labelled(
        self, wanted: Wanted, progress: Callable[[State], None], taken: Callable[[Step], None] | None
    ) -> Report:
        partitions = self.settings.log.partitions or 1
        rows = self.rows()
        if wanted.add_a_feature:
            rows = with_private_features(rows)
        done = replay_passes(
            rows,
            self.settings,
            partitions,
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

    def _recording(
        self, wanted: Wanted, progress: Callable[[State], None], taken: Callable[[Step], None] | None
    ) -> Report:
        if given := ", ".join(wanted.given()):
            remedy = "a recording has its own order and delays"
            raise CommandError(ExitCode.USAGE, f"{given}: for labelled data only; {remedy}")
        header, records = begin(self.content.splitlines(keepends=True))
        require_learner(self.settings, header.partitions)
        return report_of(replay_records(records, self.settings, header.partitions, progress, taken))

    def examples(self) -> Iterator[Features]:
        """Its examples as features before scaling, without BIAS; what cannot be read is left out, and told."""
        decode = features.reader(FeatureSettings(bias=False, missing=self.settings.features.missing))
        unread = 0
        for raw in self._raw():
            try:
                yield decode(raw)
            except BadRecord:
                unread += 1
        if unread:
            message(f"{unread} examples could not be read and are left out")

    def _raw(self) -> Iterator[bytes]:
        if self.form != "recording":
            yield from (encode(row.features) for row in self.rows())
            return
        _, records = begin(self.content.splitlines(keepends=True))
        reader = InputReader(self.settings.messages, self.settings.labels)
        for record in records:
            if record.topic == "examples":
                try:
                    yield reader.example(record)[1]
                except BadRecord:
                    yield b""


def scale_of(source: ReplaySource) -> str:
    """`[features.scale]` as TOML, fitted on the source."""
    lines = [f"{toml_key(name)} = {shown(list(pair))}" for name, pair in fitted(source.examples()).items()]
    return "\n".join(["[features.scale]", *lines]) + "\n"
