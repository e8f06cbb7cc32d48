"""The schema registry as a command asks it: what goes wrong ends the command."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mistakebound.commands.errors import CommandError
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.core.messages.formats.schema_text import SchemaText
    from mistakebound.core.records import Record
    from mistakebound.settings import RegistrySettings, Settings
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


def schemas_named_by(
    records: Iterable["Record"], settings: "Settings", held: Mapping[str, "SchemaText | None"]
) -> dict[str, "SchemaText | None"]:
    """By id: those of files, those that are `held`, and the registry's for what else these records name.

    Without `registry.url` nobody is asked, and no record is looked at. Raises CommandError where the registry gives no
    answer.
    """
    from mistakebound.core.messages.formats.framing import schema_id_of
    from mistakebound.worker.registry.prefetch import file_schemas, framed_inputs

    found = {**file_schemas(settings.messages), **held}
    framed = framed_inputs(settings.messages)
    if not framed or settings.registry.url is None:
        return found
    named = {schema_id_of(record) for record in records if record.topic in framed}
    with asked_registry(settings.registry) as registry:
        for schema_id in sorted(one for one in named if one is not None and one not in found):
            found[schema_id] = registry.schema(schema_id)
    return found
