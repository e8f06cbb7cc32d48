"""The demo's settings are its own: it must neither write into anybody's topics nor stumble over anybody's settings.

1. Only flags say where it works and how it learns. Of files and variables it takes what names no topic, no group and
   no folder: options of the Kafka client, and from variables the address of the page, which a container sets.
2. What it leaves aside is named, unless it is as the demo has it anyway.
3. A prefix, a topic or a group that a flag names must be confirmed.
4. Where the present folder takes no files, as in the image, its log is in the folder that a variable gives to checkpoints.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mistakebound.commands.checkpoint_files import DEMO_LOG, beside
from mistakebound.commands.errors import CommandError
from mistakebound.config.load import DEFAULT_FILE, check
from mistakebound.config.problems import Problem
from mistakebound.config.sources import Given, from_environment, from_file, from_flags
from mistakebound.core.learners import kind_of
from mistakebound.settings import Settings

PREFIX = "demo."
"""On Kafka, where others have topics too."""
STEP_RECORDS = 50
"""Small, so that one can watch the steps."""
MARGIN = 0.05
"""A margin that the pages' updates do not refute, but with some labels turned round do."""
MAX_DELAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Own:
    """Settings for the demo."""

    settings: Settings
    is_address_given: bool
    """By a flag: then no other port will do."""
    ignored: Sequence[str]
    """A line for each source whose settings were left aside, and the keys."""


def read_own(
    config: Path | None,
    sets: Sequence[str],
    log_url: str | None,
    environ: Mapping[str, str],
    *,
    confirmed: bool,
) -> Own:
    """Raises ConfigurationError for what is wrong with the flags or a file that was named; CommandError."""
    problems: list[Problem] = []
    others: list[Problem] = []  # with what the demo does not take; only a named file must be right
    path, is_named = (DEFAULT_FILE, False) if config is None else (config, True)
    file = list(from_file(path, "--config", problems if is_named else others, must_exist=is_named))
    variables = list(from_environment(environ, others))
    flags = list(from_flags(sets, log_url, problems))
    taken = [one for one in (*file, *variables) if one.key.startswith("kafka.")]
    taken += [one for one in variables if one.key == "http.address"]
    found = check(problems, taken, flags)
    if not confirmed:
        _must_be_own(flags)
    given = {one.key for one in flags}
    folder = None if found.settings.log.url or _takes_files(".") else _folder_of_checkpoints(variables)
    settings = _with_defaults(found.settings, given, folder)
    if folder is not None:
        given.add("checkpoint.url")
    left = [one for one in (*file, *variables) if one not in taken and one.key not in given]
    return Own(settings, "http.address" in given, _ignored(left, settings))


def declare_margin(own: Own) -> Own:
    """With `MARGIN` declared, unless a margin is or the learner knows none: so that a change can be proved."""
    learner = own.settings.learner
    if learner.gamma is not None or "gamma" not in kind_of(own.settings).parameters:
        return own
    declared = learner.model_copy(update={"gamma": MARGIN})
    return replace(own, settings=own.settings.model_copy(update={"learner": declared}))


def _must_be_own(flags: Iterable[Given]) -> None:
    for one in flags:
        elsewhere = one.key in ("log.prefix", "worker.group") or one.key.startswith("topics.")
        if elsewhere and one.value != PREFIX:
            raise CommandError(
                f"--set {one.key}={one.value}: the demo has topics of its own, and would send its web pages there; "
                "leave it out, or confirm it with --yes"
            )


def _folder_of_checkpoints(variables: Iterable[Given]) -> str | None:
    """The one that a variable names, if it takes files."""
    named = (str(one.value) for one in variables if one.key == "checkpoint.url")
    return next((folder for folder in named if _takes_files(folder)), None)


def _takes_files(folder: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _with_defaults(settings: Settings, given: Iterable[str], folder: str | None) -> Settings:
    """The demo's own, where no flag says otherwise. `folder` is where its log goes if not into the present one."""
    scheme, _, file = DEMO_LOG.partition(":")
    url = settings.log.url or (DEMO_LOG if folder is None else f"{scheme}:{Path(folder) / file}")
    on_kafka = url.startswith("kafka")
    prefix = settings.log.prefix if "log.prefix" in given else PREFIX if on_kafka else ""
    changes: dict[str, Any] = {"log": settings.log.model_copy(update={"url": url, "prefix": prefix})}
    if settings.labels.max_delay is None:
        changes["labels"] = settings.labels.model_copy(update={"max_delay": MAX_DELAY})
    if "batch.max_records" not in given:
        changes["batch"] = settings.batch.model_copy(update={"max_records": STEP_RECORDS})
    if "checkpoint.url" not in given:
        # 1,250 pages are read again at once; on Kafka there is no folder that is surely the demo's.
        changes["checkpoint"] = settings.checkpoint.model_copy(update={"url": beside(url)})
    return settings.model_copy(update=changes)


def _ignored(left: Iterable[Given], settings: Settings) -> list[str]:
    by_source: dict[str, list[str]] = {}
    for one in left:
        if _differs(one, settings):
            source = one.origin.name if one.origin.kind == "file" else one.origin.kind
            by_source.setdefault(source, []).append(one.key)
    return [f"of {source}: {', '.join(sorted(set(keys)))}" for source, keys in by_source.items()]


def _differs(one: Given, settings: Settings) -> bool:
    section, _, name = one.key.partition(".")
    try:
        theirs = Settings.model_validate({section: {name: one.value}})
    except ValidationError:
        return True
    return bool(getattr(getattr(theirs, section), name) != getattr(getattr(settings, section), name))
