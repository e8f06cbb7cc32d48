"""`config`: what is set, where it comes from, and whether it is consistent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from mistakebound.commands.app import group
from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import (
    Config,
    Json,
    LogUrl,
    Sets,
    load,
    open_log,
    print_cautions,
    read_settings,
)
from mistakebound.commands.output import print_form, print_json, print_message, render_table
from mistakebound.commands.registry import asked_registry
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

config = group("Check and show the settings.")


@config.command()
def check(
    online: Annotated[
        bool,
        Option(
            "--online",
            help="Also log in, try a transaction, check the topics, ask the registry, write to checkpoint.url.",
        ),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Check everything that `run` needs. Exit 2 with all problems at once; with --online also 3 or 4."""
    settings = _settings_for_run(config, sets, log)
    print_cautions(settings)
    if online:
        from mistakebound.commands.checkpoint_files import open_own_store
        from mistakebound.commands.topics.check import check_topics

        with open_log(settings) as reached:
            _try_transactions(reached)
            check_topics(reached, settings)
        if settings.registry.url is not None:
            with asked_registry(settings.registry) as registry:
                registry.probe()
        if (store := open_own_store(settings.checkpoint)) is not None:
            store.probe()
    print_message("the configuration is complete")


def _settings_for_run(config: Path | None, sets: list[str] | None, log: str | None) -> "Settings":
    """Raises CommandError with all problems: those of values, of what is missing, of files and of the log's client."""
    from mistakebound.config.checks import require_for_run
    from mistakebound.config.problems import ConfigurationError, Problem, listed
    from mistakebound.log import check_client
    from mistakebound.log.protocol import Misconfigured
    from mistakebound.worker.http.tls import TlsError, tls_of

    problems: list[Problem | str] = []
    reported: set[str] = set()
    example = ""
    try:
        settings = read_settings(config, sets, log)
    except ConfigurationError as error:
        settings = error.valid
        problems += error.problems
        reported |= {problem.key for problem in error.problems}
    try:
        require_for_run(settings)
    except ConfigurationError as error:
        missing = [problem for problem in error.problems if problem.key not in reported]
        problems += missing
        example = error.example if missing else ""
    try:
        tls_of(settings.http)
    except TlsError as error:
        problems.append(str(error))
    if "log.url" not in reported:
        try:
            check_client(settings)
        except Misconfigured as error:
            problems += map(str, error.args)
    if problems:
        raise CommandError(listed(problems, example))
    return settings


def _try_transactions(log: "Log") -> None:
    """Say whether the broker has them. Raises CommandError (exit code 3) where it has none."""
    from mistakebound.log.protocol import Refused

    try:
        untried = log.try_transactions()
    except Refused as error:
        raise CommandError(str(error), ExitCode.CHECK_FAILED) from error
    if untried is None:
        print_message("transactions: the log has them")
    else:
        print_message(f"warning: whether the log has transactions was not tried: {untried}")


@config.command()
def show(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """Print every setting in effect, and where it came from. Secrets are masked."""
    from mistakebound.commands.json_forms import SettingShown
    from mistakebound.config.keys import effective, render_toml

    found = load(config, sets, log)
    rows = [(key, value, found.origins[key]) for key, value in effective(found.settings).items()]
    if json:
        print_form({k: SettingShown(v, o.kind, o.name or None) for k, v, o in rows})
    else:
        shown = [(key, render_toml(value), origin) for key, value, origin in rows]
        print(render_table(("key", "value", "from"), *shown))


@config.command()
def schema(
    reference: Annotated[
        bool, Option("--reference", help="Print deploy/configuration.md: every setting at length.")
    ] = False,
) -> None:
    """Print the JSON Schema of mistakebound.toml; editors complete and check the file with it."""
    from mistakebound.config.keys import json_schema
    from mistakebound.config.reference import reference as render_reference

    if reference:
        print(render_reference(), end="")
    else:
        print_json(json_schema())
