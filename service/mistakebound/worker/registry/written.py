"""The schemas that a partition's `outcomes` hold, read back when it is taken over: nobody need be asked for them again."""

from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import read_outcomes
from mistakebound.log.protocol import Log
from mistakebound.worker.torn_steps import newest_step


def written_schemas(log: Log, partition: int, epoch: int) -> tuple[dict[str, int], dict[str, SchemaText]]:
    """By id, of this epoch: (where they are, or lower; what they are). Those that retention has deleted are left out.

    Raises BadLog, Unreachable.
    """
    newest = newest_step(log, partition)
    if newest is None or newest.outcomes.model.epoch != epoch:
        return {}, {}
    low = log.low_watermark("outcomes", partition)
    there: dict[str, int] = {}
    texts: dict[str, SchemaText] = {}
    for schema_id, start in (newest.outcomes.schemas_at or {}).items():
        text = None if start < low else _first(log, partition, start, schema_id)
        if text is not None:
            there[schema_id], texts[schema_id] = start, text
    return there, texts


def _first(log: Log, partition: int, start: int, schema_id: str) -> SchemaText | None:
    for record in log.read("outcomes", partition, start):
        if b'"schemas":' in (record.value or b""):
            found = (read_outcomes(record).schemas or {}).get(schema_id)
            if found is not None:
                return found
    return None
