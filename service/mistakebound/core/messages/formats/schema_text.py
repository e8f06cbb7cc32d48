"""A schema as its registry gave it, with everything it refers to: all that a record needs to be decoded."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from mistakebound.settings import OF_FILE, schema_id

TYPES = {"avro": "AVRO", "protobuf": "PROTOBUF", "json-schema": "JSON"}
"""`messages.format` -> what a registry calls it."""

_encode = msgspec.json.Encoder().encode


class Reference(Struct, frozen=True, gc=False):
    """A schema that another one refers to by a name: an Avro type, a file that Protobuf imports, a JSON Schema's `$ref`."""

    name: str
    text: str


class SchemaText(Struct, frozen=True, omit_defaults=True, gc=False):
    """A schema, and what it refers to: first what is referred to, then what refers to it."""

    type: str
    """As the registry calls it: AVRO, PROTOBUF, JSON, or one that is not read here."""
    text: str
    references: list[Reference] = []
    compiled: str | None = None
    """Protobuf: a FileDescriptorSet in base64, this schema's file last; absent where the text does not compile."""
    wrong: str | None = None
    """Protobuf: why it does not compile."""


Known = Callable[[str], SchemaText | None]
"""From a schema's id to the schema; None where there is none of this id."""


class BadSchema(Exception):
    """No record can be decoded by this schema; the text says why."""


def as_setting(schema: SchemaText) -> str:
    """A file's schema as the value of a setting."""
    return _encode(schema).decode()


def of_setting(value: str) -> tuple[str, SchemaText | None]:
    """(the schema's id, the schema where the value holds it and not the id alone). Raises BadSchema."""
    if value.startswith(OF_FILE):
        return value, None
    try:
        return schema_id(value), msgspec.json.decode(value, type=SchemaText)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadSchema(f"it is no schema: {error}; write @ and the name of the schema's file") from None
