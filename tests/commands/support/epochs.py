"""A log on which epochs begin, all that it holds, and its settings as flags."""

from collections.abc import Mapping
from typing import Any

from mistakebound.core.messages.schema import Epoch, Update, read_update
from mistakebound.core.records import TOPICS
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.worker.support.working import Run, stream

PATIENCE_S = 60.0


def flags(settings: Settings, *more: str) -> list[str]:
    """The same settings for the command line."""
    keys = {
        "log.prefix": settings.log.prefix,
        "labels.max_delay": 1000,
        "learner.kind": settings.learner.kind,
        "checkpoint.url": "",
    }
    given = [f"--set={key}={value}" for key, value in keys.items()]
    return ["--log", settings.log.url or "", *given, *(f"--set={each}" for each in more)]


def everything(log: Log) -> Mapping[Any, Any]:
    """All records, and the group's positions."""
    records = {(t, p): list(log.read(t, p, 0)) for t in TOPICS for p in range(log.partitions)}
    return {**records, "positions": log.group_positions()}


def read_updates(log: Log, partition: int = 0) -> list[Update | Epoch]:
    """A partition of `updates`."""
    return [read_update(record) for record in log.read("updates", partition, 0)]


def work_on(log: Log, settings: Settings, count: int = 40, first: int = 0) -> Run:
    """Send a stream, and run a worker to its end."""
    log.append(stream(count, partitions=log.partitions, first=first))
    return Run(log, settings)
