"""What users' own tests call: settings as the command line reads them, and a replay.

Import these names from `mistakebound`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mistakebound.config.checks import require_learner
from mistakebound.config.load import load_arguments
from mistakebound.core.replay.plan import carry_out, planned, report_as
from mistakebound.core.replay.recorded import Recorded
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.rejections import Rejections
from mistakebound.core.replay.replay import report_of
from mistakebound.core.reporting.report import Report
from mistakebound.settings import Settings


def load_settings(file: str | Path | None = None, **overrides: Mapping[str, Any]) -> Settings:
    """Checked settings from a TOML file, if one is named, with `overrides` on top, a mapping for each section.

    `load_settings("mistakebound.toml", labels={"max_delay": "P7D"})`. The environment is not read, so a test
    gives the same result everywhere. Raises ConfigurationError, which lists every problem with its key, value,
    origin and remedy.
    """
    return load_arguments(None if file is None else Path(file), overrides).settings


def replay(
    recording: str | Path | Iterable[bytes], settings: Settings | None = None, *, afresh: bool = False
) -> Report:
    """The worker's report on a recording: a path, or its lines as bytes.

    A recording that holds what a worker made of its inputs is repeated as recorded, with the numbers of the live stream;
    learner, features, labels and messages are the recording's where `settings` do not set them. With other ones, with `afresh`, or
    where the recording cannot be repeated, its inputs are run anew, and `Report.afresh` says why.

    The same recording with the same settings gives an equal report. What could not be read is in its `rejected`, as
    a worker would have made dead letters of it; where nothing was judged, its rates are None. Raises RecordingError, naming the
    line, where it is not a recording; NotAsRecorded where its inputs come to something else than it says; ConfigurationError
    for settings with which the learner cannot run on its partitions; OSError when the file cannot be read.
    """
    if isinstance(recording, str | Path):
        with Path(recording).open("rb") as file:
            return replay(file, settings, afresh=afresh)
    header, records = begin(recording)
    recorded, rejections = Recorded(records, header.partitions), Rejections()
    plan = planned(recorded, settings or Settings(), afresh=afresh)
    require_learner(plan.settings, header.partitions)
    state = carry_out(recorded, plan, taken=rejections.see)
    return report_as(plan, report_of(state, rejections.found()))
