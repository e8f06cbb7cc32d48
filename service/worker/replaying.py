"""Replay a recording from Python, for users' own tests."""

from collections.abc import Iterable
from pathlib import Path

from service.core.learners.requirements import unmet
from service.core.recording import begin
from service.core.replay import replay_records, report_of
from service.core.report import Report
from service.settings import Settings


def replay(recording: str | Path | Iterable[bytes], settings: Settings | None = None) -> Report:
    """What the worker would make of a recording: a path, or its lines.

    The same recording with the same settings gives an equal report. Raises RecordingError, naming the
    line, for what is no recording; OSError when the file cannot be read; ValueError for settings with which
    the learner cannot run.
    """
    chosen = settings if settings is not None else Settings()
    if isinstance(recording, str | Path):
        with Path(recording).open("rb") as file:
            return replay(file, chosen)
    header, records = begin(recording)
    if problems := [" ".join(one) for one in unmet(chosen, header.partitions)]:
        raise ValueError("; ".join(problems))
    return report_of(replay_records(records, chosen, header.partitions))
