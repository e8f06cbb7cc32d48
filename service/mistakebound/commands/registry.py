"""The schema registry as a command asks it: what goes wrong ends the command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mistakebound.commands.errors import CommandError
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.settings import RegistrySettings
    from mistakebound.worker.registry.client import Registry


@contextmanager
def asked_registry(settings: "RegistrySettings") -> Iterator["Registry"]:
    """The registry at `registry.url`. Raises CommandError where it gives no answer."""
    from mistakebound.worker.registry.client import Registry, RegistryAway, RegistryRefused

    try:
        yield Registry(settings)
    except RegistryAway as error:
        raise CommandError(f"the schema registry: {error}", ExitCode.UNREACHABLE) from None
    except RegistryRefused as error:
        raise CommandError(f"the schema registry: {error}") from None
