"""Where the two sides of a comparison come from: prefixes on a log, recordings, files of judged predictions."""

import heapq
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import InputFile, is_recording, open_input_file
from mistakebound.commands.log_ranges import read_range, readable_end
from mistakebound.commands.options import open_log
from mistakebound.commands.recordings import RecordingFile
from mistakebound.core.comparison import judged as judged_files
from mistakebound.core.comparison.judged import Judged, JudgedError, judged_outcomes
from mistakebound.core.messages.schema import Epoch, read_update
from mistakebound.core.records import INPUTS, Record
from mistakebound.core.replay.kcat import is_kcat
from mistakebound.exit_codes import ExitCode
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings, TopicSettings

_FILES = (".jsonl", ".json", ".csv", ".tsv", ".svm", ".svmlight", ".libsvm", ".ndjson")


@dataclass(frozen=True, slots=True)
class OpenSide:
    """One side."""

    name: str
    of: Literal["log", "recording", "judged"]
    settings: Mapping[str, Any] | None
    """Those that its newest epoch fixed; None where it says none."""
    inputs: Mapping[str, str]
    """Names of its input topics by logical topic, where they are known."""
    judged: Iterator[Judged]
    """By stream time; those of a partition in its order."""

    @property
    def learner(self) -> str | None:
        """The kind."""
        found = None if self.settings is None else self.settings.get("learner", {}).get("kind")
        return found if isinstance(found, str) else None


def must_differ(first: str, second: str) -> None:
    """Raises CommandError where both are one."""
    alike = first == second
    if _is_file(first) and _is_file(second):
        alike = Path(first).resolve() == Path(second).resolve()
    if alike:
        what = f"{first!r} is given twice" if first == second else f"{first!r} and {second!r} are one file"
        raise CommandError(f"{what}: there is nothing to compare; give the other one's prefix or file")


@contextmanager
def open_side(name: str, settings: Settings, other: str) -> Iterator[OpenSide]:
    """A file where there is one of that name, else a prefix on the log that the settings name.

    A prefix without input topics of its own reads those of the settings, or of the `other` side's prefix.

    Raises CommandError, ConfigurationError, JudgedError, RecordingError, LogError, BadLog.
    """
    if not _is_file(name):
        if "/" in name or Path(name).suffix in _FILES:
            raise CommandError(f"{name} cannot be read: there is no such file")
        with open_log(_of_prefix(settings, name, other)) as log:
            yield _of_log(log, name)
        return
    with open_input_file(name) as file:
        beginning = file.beginning()
        if judged_files.is_judged(beginning):
            yield _of_judged(file)
        elif is_recording(beginning) or is_kcat(beginning):
            yield _of_recording(file, settings)
        else:
            raise CommandError(
                f"{name} is neither a recording nor a file of judged predictions; from labelled data "
                f"`mistakebound replay {name} --judged FILE` makes one"
            )


def _is_file(name: str) -> bool:
    return bool(name) and Path(name).is_file()


def _of_prefix(settings: Settings, prefix: str, other: str) -> Settings:
    """The settings of a worker under this prefix. Topics that are named one by one are those of the configured prefix."""
    if prefix == settings.log.prefix:
        return settings
    log = settings.log.model_copy(update={"prefix": prefix})
    own = settings.model_copy(update={"log": log, "topics": TopicSettings()})
    shared = {topic: settings.topic_name(topic) for topic in INPUTS}
    for inputs in ({}, shared, {topic: other + topic for topic in INPUTS}):
        found = own.model_copy(update={"topics": TopicSettings.model_validate(inputs)})
        with open_log(found) as reached:
            described = reached.describe()
        if all(described[topic] is not None for topic in INPUTS):
            return found
    return own


def _of_log(log: Log, prefix: str) -> OpenSide:
    described = log.describe()
    outcomes, updates = described["outcomes"], described["updates"]
    if None in described.values() or outcomes is None or updates is None:
        raise CommandError(
            f"the log has not all topics of a worker under the prefix {prefix!r}, so none has predicted there; "
            "`mistakebound status --set log.prefix=PREFIX` shows what one holds",
            ExitCode.CHECK_FAILED,
        )
    newest = newest_record(log, "updates", 0, _begins_an_epoch)
    epoch = None if newest is None else read_update(newest)
    inputs: Mapping[str, str] = {}
    if isinstance(epoch, Epoch) and isinstance(epoch.topics, dict):
        inputs = {topic: one.name for topic, one in epoch.topics.items()}

    def judged(partition: int) -> Iterator[Judged]:
        start, end = log.low_watermark("outcomes", partition), readable_end(log, "outcomes", partition)
        return judged_outcomes(read_range(log, "outcomes", partition, start, end))

    return OpenSide(
        prefix,
        "log",
        epoch.settings if isinstance(epoch, Epoch) else None,
        inputs,
        heapq.merge(*map(judged, range(outcomes.partitions)), key=attrgetter("at")),
    )


def _begins_an_epoch(record: Record) -> bool:
    return b'"format":' in (record.value or b"")[:64]


def _of_recording(file: InputFile, settings: Settings) -> OpenSide:
    header, records = RecordingFile(file, settings).begin()
    outcomes: list[list[Record]] = [[] for _ in range(header.partitions)]
    newest: Epoch | None = None
    for record in records:
        if record.topic == "outcomes":
            outcomes[record.partition].append(record)
        elif record.topic == "updates" and _begins_an_epoch(record):
            epoch = read_update(record)
            if isinstance(epoch, Epoch) and (newest is None or epoch.epoch > newest.epoch):
                newest = epoch
    judged = heapq.merge(*map(judged_outcomes, outcomes), key=attrgetter("at"))
    return OpenSide(file.name, "recording", None if newest is None else newest.settings, {}, judged)


def _of_judged(file: InputFile) -> OpenSide:
    try:
        header, judged = judged_files.begin(file.lines())
    except JudgedError as error:
        raise CommandError(f"{file.name}: {error}") from None
    return OpenSide(file.name, "judged", header.settings, {}, _checked(file.name, judged))


def _checked(name: str, judged: Iterator[Judged]) -> Iterator[Judged]:
    try:
        yield from judged
    except JudgedError as error:
        raise CommandError(f"{name}: {error}") from None
