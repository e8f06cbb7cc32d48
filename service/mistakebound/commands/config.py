"""`config`: what is set, by whom, and whether it holds together."""

from typing import Annotated

import typer

from mistakebound.commands.options import Config, Json, LogUrl, Sets, loaded, opened
from mistakebound.commands.output import as_json, message, table

config = typer.Typer(
    help="Check and show the settings.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@config.command()
def check(
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="Also ask the log whether its topics fit, and write to checkpoint.url."
        ),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Check everything that `run` needs. Exit 2 with all problems at once; with --online 3 and 4 too."""
    from mistakebound.config.checks import require_for_run
    from mistakebound.worker.http.tls import tls_of

    settings = loaded(config, sets, log).settings
    require_for_run(settings)
    tls_of(settings.http)
    if online:
        from mistakebound.commands.topics.topics import report
        from mistakebound.worker.checkpoints.open_store import open_store

        with opened(settings) as reached:
            report(reached, settings, as_json_text=False)
        if settings.checkpoint.url:
            open_store(settings.checkpoint.url, settings.checkpoint.timeout.total_seconds()).probe()
    message("the configuration is complete")


@config.command()
def show(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """Print every setting as it is in effect, and where it came from. Secrets are masked."""
    from mistakebound.config.keys import effective, shown

    found = loaded(config, sets, log)
    values = effective(found.settings)
    if json:
        rows = {
            key: {"value": value, "origin": found.origins[key].kind, "from": found.origins[key].name or None}
            for key, value in values.items()
        }
        as_json(rows)
        return
    print(
        table(
            ("key", "value", "from"),
            ((key, shown(value), found.origins[key]) for key, value in values.items()),
        )
    )


@config.command()
def schema(
    reference: Annotated[
        bool, typer.Option("--reference", help="Print deploy/configuration.md: every setting at length.")
    ] = False,
) -> None:
    """Print the JSON Schema of mistakebound.toml, by which editors complete and check it."""
    from mistakebound.config import keys

    if reference:
        from mistakebound.config.reference import reference as whole

        print(whole(), end="")
    else:
        as_json(keys.json_schema())
