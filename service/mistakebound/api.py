"""What users' own tests call: settings as the command line reads them, and a replay.

Import these names from `mistakebound`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mistakebound.config.checks import require_learner
from mistakebound.config.load import load_arguments
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.rejections import Rejections
from mistakebound.core.replay.replay import replay_records, report_of
from mistakebound.core.reporting.report import Report
from mistakebound.settings import Settings


def load_settings(file: str | Path | None = None, **overrides: Mapping[str, Any]) -> Settings:
    """Checked settings from a TOML file, if one is named, with `overrides` on top, a mapping for each section.

    `load_settings("mistakebound.toml", labels={"max_delay": "P7D"})`. The environment is not read, so a test
    gives the same result everywhere. Raises ConfigurationError, which lists every problem with its key, value,
    origin and remedy.
    """
    return load_arguments(None if file is None else Path(file), overrides).settings


def replay(recording: str | Path | Iterable[bytes], settings: Settings | None = None) -> Report:
    """The worker's report on a recording: a path, or its lines as bytes. Without `settings`, the defaults are used.

    The same recording with the same settings gives an equal report. What could not be read is in its `rejected`, as
    a worker would have made dead letters of it; where nothing was judged, its rates are None. Raises RecordingError, naming the line,
    where it is not a recording; ConfigurationError for settings with which the learner cannot run on its
    partitions; OSError when the file cannot be read.
    """
    if isinstance(recording, str | Path):
        with Path(recording).open("rb") as file:
            return replay(file, settings)
    settings = settings or Settings()
    header, records = begin(recording)
    require_learner(settings, header.partitions)
    rejections = Rejections()
    state = replay_records(records, settings, header.partitions, taken=rejections.see)
    return report_of(state, rejections.found())
