"""`messages.examples_schema = "@FILE"`: a schema from a file, which replaces its name so that the log can hold it."""

from importlib.util import find_spec
from pathlib import Path

from mistakebound.core.messages.formats.schema_text import TYPES, SchemaText, as_setting
from mistakebound.settings import OF_FILE

MARK = "@"
KEYS = ("messages.examples_schema", "messages.labels_schema")
LARGEST_BYTES = 500_000
"""A record of `outcomes` holds the schema, and must fit its topic."""
EXTRA = "registry"
LIBRARIES = {
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf", "grpc_tools"),
    "json-schema": ("jsonschema",),
}
"""What each format needs."""
CLIENT = ("confluent_kafka", "httpx2", "attrs", "cachetools", "authlib")
"""What Confluent's registry client needs; it falls back to httpx on older Pythons, which this project does not run on."""


class BadSchemaFile(ValueError):
    """The file cannot be used; the text names it."""


def missing(names: tuple[str, ...]) -> list[str]:
    """Those libraries that are not installed."""
    found = []
    for name in names:
        try:
            if find_spec(name) is None:
                found.append(name)
        except ModuleNotFoundError:  # of the package it is in
            found.append(name)
    return found


def read_schema(value: str, form: str) -> str:
    """The file's schema as the setting's value; a value that is no file's name as it is. Raises BadSchemaFile."""
    if not value.startswith(MARK):
        if not value.startswith((OF_FILE, "{")):
            raise BadSchemaFile(f"{value!r:.60} names no file; write {MARK} before its name")
        return value
    path = Path(value.removeprefix(MARK))
    if form not in TYPES:
        raise BadSchemaFile("messages in plain JSON have no schema; set messages.format")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadSchemaFile(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadSchemaFile(f"{path} is not UTF-8 text at byte {error.start}") from None
    if form == "protobuf":
        if lacking := missing(LIBRARIES[form]):
            raise BadSchemaFile(f"{', '.join(lacking)} is missing; install `mistakebound[{EXTRA}]`")
        from mistakebound.worker.registry.protoc import compiled

        descriptors, wrong = compiled(text, (), path.resolve().parent)
        if wrong is not None:
            raise BadSchemaFile(f"{path} does not compile: {wrong}")
        found = as_setting(SchemaText("PROTOBUF", text, compiled=descriptors))
    else:
        found = as_setting(SchemaText(TYPES[form], text))
    if len(found) > LARGEST_BYTES:
        raise BadSchemaFile(f"{path} takes {len(found)} bytes with all it imports; at most {LARGEST_BYTES}")
    return found
