"""Options that most verbs take, and how checked settings and an open log come from them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from typer import Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import print_message

if TYPE_CHECKING:
    from mistakebound.config.load import Loaded
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

Choice = TypeVar("Choice", bound=str)
Config = Annotated[
    Path | None,
    Option("--config", metavar="FILE", help="Settings in TOML; default ./mistakebound.toml, if it exists."),
]
Sets = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="One setting, such as learner.kind=winnow; may be repeated."),
]
LogUrl = Annotated[
    str | None,
    Option("--log", metavar="URL", help="The log: kafka://host:9092, sqlite:FILE or sqlite::memory:."),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, Option("--dry-run", "-n", help="Print the plan and do nothing.")]
WaitS = Annotated[float, Option("--wait", min=0, metavar="SECONDS", help="How long to wait for the group.")]


def choose_topic(name: str, value: str, choices: "tuple[Choice, ...]", settings: "Settings") -> Choice:
    """The logical name, one of the choices, that `value` spells. Raises CommandError.

    Whoever gave a topic another name tends to write that one: the error then says which is meant.
    """
    from mistakebound.core.records import TOPICS

    for choice in choices:
        if value == choice:
            return choice
    called = {settings.topic_name(topic): topic for topic in TOPICS}
    meant = f": `{value}` is `{called[value]}` here" if value in called else ""
    raise CommandError(f"{name} must be one of {', '.join(choices)}, not {value!r}{meant}")


def load(config: Path | None, sets: list[str] | None, log: str | None) -> "Loaded":
    """Settings with their origins. Raises ConfigurationError."""
    from mistakebound.config.load import load as load_from

    return load_from(config, sets or (), log, os.environ)


def read_settings(config: Path | None, sets: list[str] | None, log: str | None) -> "Settings":
    """Checked settings. Raises ConfigurationError."""
    return load(config, sets, log).settings


def print_cautions(settings: "Settings") -> None:
    """Warn of settings that are allowed and hardly ever wanted."""
    from mistakebound.config.checks import cautions

    for each in cautions(settings):
        print_message(f"warning: {each}")


def read_log_settings(config: Path | None, sets: list[str] | None, log: str | None) -> "Settings":
    """Settings to reach a log with: those that an epoch fixes are left at their defaults. Raises ConfigurationError."""
    from mistakebound.config.load import load_without_epoch

    return load_without_epoch(config, sets or (), log, os.environ).settings


def open_log(settings: "Settings") -> "Log":
    """The log that the settings name, for a `with`. Raises ConfigurationError where they name none."""
    from mistakebound import log
    from mistakebound.config.checks import require_log

    require_log(settings)
    return log.open_log(settings)
