"""`config`: what is set, by whom, and whether it holds together."""

from typing import Annotated

import typer

from mistakebound.commands.options import Config, Json, LogUrl, Sets, load, open_log, read_settings
from mistakebound.commands.output import as_json, print_message, table

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

    settings = read_settings(config, sets, log)
    require_for_run(settings)
    tls_of(settings.http)
    if online:
        from mistakebound.commands.checkpoint_files import open_own_store
        from mistakebound.commands.topics.check import check_topics

        with open_log(settings) as reached:
            check_topics(reached, settings)
        store = open_own_store(settings.checkpoint)
        if store is not None:
            store.probe()
    print_message("the configuration is complete")


@config.command()
def show(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """Print every setting in effect, and where it came from. Secrets are masked."""
    from mistakebound.config.keys import effective, shown

    found = load(config, sets, log)
    rows = [(key, value, found.origins[key]) for key, value in effective(found.settings).items()]
    if json:
        as_json(
            {
                key: {"value": value, "origin": origin.kind, "from": origin.name or None}
                for key, value, origin in rows
            }
        )
    else:
        print(table(("key", "value", "from"), [(key, shown(value), origin) for key, value, origin in rows]))


@config.command()
def schema(
    reference: Annotated[
        bool, typer.Option("--reference", help="Print deploy/configuration.md: every setting at length.")
    ] = False,
) -> None:
    """Print the JSON Schema of mistakebound.toml, with which editors complete and check it."""
    from mistakebound.config.keys import json_schema
    from mistakebound.config.reference import reference as render_reference

    if reference:
        print(render_reference(), end="")
    else:
        as_json(json_schema())
