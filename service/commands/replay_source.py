"""A file to replay, a recording or labelled data: through the worker's step, or only looked at for its scale."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

from service.commands.consistency import require_learner
from service.commands.exit_codes import CommandError, ExitCode
from service.commands.labelled import READERS, text_lines
from service.commands.output import message
from service.commands.replay_options import Wanted
from service.commands.settings_keys import shown, toml_key
from service.core import features
from service.core.applied import Applied, AppliedRows
from service.core.comparators import Comparison
from service.core.comparators import compare as comparing
from service.core.faults import BadRecord
from service.core.features import Features
from service.core.inputs import InputReader, declared
from service.core.messages import encode
from service.core.model import Model
from service.core.passes import replay_passes
from service.core.private_features import with_private_features
from service.core.recording import begin
from service.core.replay import Row, replay_records, report_of
from service.core.report import Report
from service.core.scaling import fitted
from service.core.state import State
from service.core.step import Step
from service.settings import FeatureSettings, LearnerSettings, Settings


class Source(NamedTuple):
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


def scale_of(source: Source) -> str:
    """`[features.scale]` as TOML, fitted on the source."""
    lines = [f"{toml_key(name)} = {shown(list(pair))}" for name, pair in fitted(source.examples()).items()]
    return "\n".join(["[features.scale]", *lines]) + "\n"
