"""Options that take one of a few words."""

from typing import TypeVar

from mistakebound.commands.exit_codes import CommandError, ExitCode

Choice = TypeVar("Choice", bound=str)


def chosen(option: str, value: str, choices: "tuple[Choice, ...]") -> Choice:
    """The choice that `value` names. Raises CommandError, naming the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise CommandError(ExitCode.USAGE, f"{option}: {value!r} is none of {', '.join(choices)}")
