"""From a record's bytes to a message, as `messages.format` says: a pure function of the bytes and of the schema's text.

Whatever is wrong with a record is a BadRecord with a reason:

- `not-framed`: the record names no schema. `unknown-schema`: nobody has its text.
- `bad-schema`: no record can be read by the text. `schema-mismatch`: this one cannot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mistakebound.core.faults import BadRecord, MissingLibrary
from mistakebound.core.messages.formats import avro, json_schema, protobuf
from mistakebound.core.messages.formats.framing import FIRST, Framed, unframe
from mistakebound.core.messages.formats.schema_text import (
    TYPES,
    BadSchema,
    Known,
    SchemaText,
)
from mistakebound.core.messages.json_text import read_json
from mistakebound.core.records import Record, Stream
from mistakebound.settings import MessageSettings, schema_id

_any = msgspec.json.Decoder().decode

Read = Callable[[Framed], Any]


class _Held(NamedTuple):
    """A schema, and what reads by it; or why nothing can."""

    schema: SchemaText
    read: Read | None
    wrong: str = ""


class Decoding:
    """One input's format. It remembers what reads by each schema."""

    def __init__(self, form: str, file_schema: str | None = None, message: str = "") -> None:
        """`form`: any but `json`. `file_schema`: the id of the schema of all records, which are then not framed.

        `message`: the name of the Protobuf message in that file; empty for the first one.
        """
        self._type = TYPES[form]
        self.file, self._message = file_schema, message
        self._held: dict[str, _Held] = {}

    def decode(self, record: Record, known: Known | None) -> Any:
        """The message, as JSON would have it. Raises BadRecord, MissingLibrary."""
        value = record.value
        if value is None:
            raise BadRecord("tombstone", "the record has no value; send the message")
        if self.file is None:
            framed = unframe(record, value, protobuf=self._type == "PROTOBUF")
        else:
            framed = Framed(self.file, value, FIRST)
        schema = None if known is None else known(framed.schema)
        if schema is None:
            raise BadRecord(
                "unknown-schema",
                f"no schema of id {framed.schema} is known; register it, or correct registry.url",
            )
        held = self._held.get(framed.schema)
        if held is None or held.schema != schema:
            held = self._held[framed.schema] = self._hold(schema)
        if held.read is None:
            raise BadRecord("bad-schema", f"schema {framed.schema}: {held.wrong}")
        try:
            return held.read(framed)
        except BadRecord:
            raise
        except BadSchema as error:
            raise BadRecord("schema-mismatch", f"schema {framed.schema}: {error}") from None
        except Exception as error:  # noqa: BLE001 - whatever a library makes of others' bytes
            raise BadRecord(
                "schema-mismatch", f"the record is not what schema {framed.schema} describes: {error!r:.200}"
            ) from None

    def _hold(self, schema: SchemaText) -> _Held:
        try:
            return _Held(schema, self._reader(schema))
        except ModuleNotFoundError as error:
            raise MissingLibrary(
                f"records of type {self._type} need {error.name}, which is missing; install `mistakebound[registry]`"
            ) from error
        except BadSchema as error:
            return _Held(schema, None, str(error))

    def _reader(self, schema: SchemaText) -> Read:
        if schema.type != self._type:
            raise BadSchema(f"it is of type {schema.type}, and messages.format says {self._type}")
        if schema.type == "AVRO":
            of_avro = avro.decoder(schema)
            return lambda framed: of_avro(framed.body)
        if schema.type == "PROTOBUF":
            of_protobuf, name = protobuf.decoder(schema), self._message if self.file else None
            return lambda framed: of_protobuf(framed.body, framed.indexes if name is None else name)
        check = json_schema.checker(schema)

        def checked(framed: Framed) -> Any:
            message = read_json(_any, framed.body)
            check(message)
            return message

        return checked


def decodings(messages: MessageSettings) -> dict[Stream, Decoding]:
    """How the inputs are decoded that are not JSON."""
    found: dict[Stream, Decoding] = {}
    if messages.format != "json":
        found["examples"] = _decoding(messages.format, messages.examples_schema, messages.examples_message)
    labels = messages.labels_format or messages.format
    if labels != "json":
        found["labels"] = _decoding(labels, messages.labels_schema, messages.labels_message)
    return found


def _decoding(form: str, file_schema: str | None, message: str | None) -> Decoding:
    return Decoding(form, None if file_schema is None else schema_id(file_schema), message or "")
