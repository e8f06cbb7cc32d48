"""How help looks: whole sentences, words of the user's instead of Python's types, colours where they are wanted.

Every verb that prints JSON also has `--schema`, which prints what that JSON looks like and reads nothing.
"""

import sys
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from mistakebound.worker.colours import paint

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": True}
"""Of the root, for all verbs. `color`: that nothing is painted for a file is seen to here, not by what prints it."""
_WHOLE = 10_000
"""Characters of a first sentence; none is that long."""


def _print_schema(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from mistakebound.commands.json_schemas import schema_of
        from mistakebound.commands.output import print_json

        print_json(schema_of(context.command_path.partition(" ")[2]))
        raise typer.Exit


def _schema(
    schema: Annotated[
        bool,
        Option(
            "--schema",
            help="Print the JSON Schema of --json, and stop.",
            callback=_print_schema,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Only its option is used."""


class Command(TyperCommand):
    """A verb with help as above, and `--schema` if it has `--json`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if any("--json" in param.opts for param in self.params):
            alone = typer.Typer(add_completion=False)
            alone.command()(_schema)
            self.params += typer.main.get_command(alone).params

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class Group(TyperGroup):
    """A verb with verbs of its own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)
        _write_section(formatter, "Commands", [
            (name, verb.get_short_help_str(_WHOLE))
            for name in self.list_commands(ctx)
            if (verb := self.get_command(ctx, name)) is not None
        ])  # fmt: skip


class Verbs(typer.Typer):
    """Makes such groups, and such verbs in them."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, cls=Command, **settings)


def _write_parameters(verb: Any, ctx: Any, formatter: Any) -> None:
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in verb.get_params(ctx):
        if (record := param.get_help_record(ctx)) is not None:
            is_argument = param.param_type_name == "argument"
            bare = is_argument and not param.type_descriptor.is_choice
            name = param.display_name_raw if bare else record[0]
            rows["Arguments" if is_argument else "Options"].append((name, record[1]))
    for heading, found in rows.items():
        _write_section(formatter, heading, found)


def _write_section(formatter: Any, heading: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(paint(heading, "heading", sys.stdout)):
            formatter.write_dl([(paint(name, "name", sys.stdout), text) for name, text in rows])
