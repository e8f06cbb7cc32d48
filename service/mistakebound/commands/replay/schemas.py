"""The schemas that a recording's inputs name, for work that its `outcomes` do not hold: theirs first, then the files' and
the registry's."""

from mistakebound.commands.registry import asked_registry
from mistakebound.core.messages.formats.framing import schema_id_of
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.replay.recorded import Recorded
from mistakebound.settings import Settings


def schemas_for(recorded: Recorded, settings: Settings) -> dict[str, SchemaText | None]:
    """By id. Without `registry.url` nobody is asked. Raises CommandError where the registry gives no answer."""
    from mistakebound.worker.registry.prefetch import file_schemas, framed_inputs

    found: dict[str, SchemaText | None] = {**file_schemas(settings.messages), **recorded.schemas()}
    framed = framed_inputs(settings.messages)
    if not framed or settings.registry.url is None:
        return found
    named = {schema_id_of(record) for record in recorded.peek_inputs() if record.topic in framed}
    with asked_registry(settings.registry) as registry:
        for schema_id in sorted(one for one in named if one is not None and one not in found):
            found[schema_id] = registry.schema(schema_id)
    return found
