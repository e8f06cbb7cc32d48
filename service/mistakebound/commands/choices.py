"""Arguments that take one of a few words, which are known only when the verb runs."""

from typing import TypeVar

from mistakebound.commands.errors import CommandError

Choice = TypeVar("Choice", bound=str)


def choose(name: str, value: str, choices: "tuple[Choice, ...]") -> Choice:
    """The choice that `value` spells. Raises CommandError, naming the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise CommandError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
