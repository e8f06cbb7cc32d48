"""The command `mistakebound`: a table of verbs, and how errors end the process.

A verb is one file in this folder with one function (or one `typer.Typer` of functions), and one line in
`VERBS`. A verb's module is imported when it is used or listed, and imports what is slow inside its
function, so that `--help` answers at once.
"""

import importlib
import os
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer import Option

from mistakebound.commands import help as helped
from mistakebound.commands.errors import code_of
from mistakebound.commands.output import print_error
from mistakebound.exit_codes import ExitCode

VERBS: dict[str, str] = {
    "demo": "mistakebound.commands.demo.demo:demo",
    "run": "mistakebound.commands.run:run",
    "replay": "mistakebound.commands.replay.replay:replay",
    "compare": "mistakebound.commands.compare.compare:compare",
    "status": "mistakebound.commands.status:status",
    "audit": "mistakebound.commands.audit.audit:audit",
    "send": "mistakebound.commands.send:send",
    "tail": "mistakebound.commands.tail:tail",
    "record": "mistakebound.commands.record:record",
    "topics": "mistakebound.commands.topics.topics:topics",
    "checkpoint": "mistakebound.commands.checkpoint:checkpoint",
    "reset": "mistakebound.commands.reset:reset",
    "config": "mistakebound.commands.config:config",
    "seed": "mistakebound.commands.seed:seed",
    "export": "mistakebound.commands.export:export",
    "learners": "mistakebound.commands.learners:learners",
    "teach": "mistakebound.commands.teach:teach",
    "health": "mistakebound.commands.health:health",
}
"""Verb to `module:function`, in the order of the help."""


class Verbs(helped.Group):
    """Looks verbs up in `VERBS`, and turns errors into a message and an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(VERBS)  # type: ignore[assignment] # names to suggest; `get_command` has the rest

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, typer.Typer):
            alone = helped.Verbs(add_completion=False, rich_markup_mode=None)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read our output has seen enough. The interpreter will flush once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(ExitCode.DONE) from None
        except Exception as error:
            if hasattr(error, "exit_code"):  # the command line's own: usage errors, and ends that were meant
                if isinstance(text := getattr(error, "message", None), str):
                    error.message = _mask(text.removeprefix("Value error, "))  # type: ignore[attr-defined]
                raise
            code = code_of(error)
            # Not left to the interpreter, which would print the secrets that a library put into its message.
            trace = "".join(traceback.format_exception(error)).rstrip()
            print_error(_mask(trace if code is ExitCode.BUG else str(error)))
            raise typer.Exit(code) from None
        return result


def group(purpose: str) -> typer.Typer:
    """A verb with verbs of its own."""
    return helped.Verbs(
        cls=helped.Group, help=purpose, no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )


def _mask(text: str) -> str:
    from mistakebound.config.masking import mask_text

    return mask_text(text)


_CODES = "; ".join(f"{code:d} {code.meaning}" for code in ExitCode)
app = typer.Typer(
    cls=Verbs,
    context_settings=helped.CONTEXT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=f"Exit codes: {_CODES}.",
)


def _version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("mistakebound")
        except PackageNotFoundError:
            number = "(not installed)"
        # Looked for, not imported: only its file's name is wanted.
        step = find_spec("mistakebound.core.step.step")
        interpreted = step is None or (step.origin or "").endswith(".py")
        print(f"mistakebound {number}{'' if interpreted else ', compiled'}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def mistakebound(
    context: typer.Context,
    show_version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Predict at once, learn late and only from mistakes, and prove every number from the log."""
    if context.invoked_subcommand is None and not show_version:
        print(context.get_help())
