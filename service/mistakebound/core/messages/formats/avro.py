"""Avro records to the values of JSON, by the schema they were written by. Decoding is fastavro's.

Avro 1.12, "Data Serialization" and "Logical Types". What JSON has no value for:

- decimal: the number nearest to it. Dates, times and timestamps: the integer that is written, in the type's own unit (days;
  milli-, micro- or nanoseconds). Of a union, the value alone; an enum's symbol is a text.
- bytes and fixed: base64. A number that is not finite: one too large to read, so that it is refused where it is looked at.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any

from msgspec import Raw

from mistakebound.core.messages.formats.schema_text import BadSchema, SchemaText

LIBRARY = "fastavro"
OURS = "mistakebound-"
"""Begins the logical types that stand for what is to become of a value; no other reader knows them."""
MOST_SCALE = 10_000

_PLAIN = ("null", "boolean", "int", "long", "string")
_MARKED = {"float": "finite", "double": "finite", "bytes": "base64"}
_TOO_LARGE = {False: Raw(b"1e999"), True: Raw(b"-1e999")}


def decoder(schema: SchemaText) -> Callable[[bytes], Any]:
    """Read one record of this schema, to its last byte. Raises BadSchema; the decoder raises whatever is wrong with a record."""
    fastavro: Any = import_module(LIBRARY)
    _teach(import_module(f"{LIBRARY}.read"))
    named: dict[str, Any] = {}
    try:
        for one in schema.references:
            fastavro.parse_schema(_marked(json.loads(one.text)), named_schemas=named)
        parsed = fastavro.parse_schema(_marked(json.loads(schema.text)), named_schemas=named)
    except Exception as error:  # noqa: BLE001 - whatever the library makes of others' schemas
        raise BadSchema(f"it is no Avro schema that can be read: {error!r:.200}") from None
    _smallest(parsed, named, ())
    read = fastavro.schemaless_reader

    def decode(body: bytes) -> Any:
        stream = BytesIO(body)
        value = read(stream, parsed, None)
        left = len(body) - stream.tell()
        if left:
            raise ValueError(f"{left} bytes are left after the record")
        return value

    return decode


def _teach(readers: Any) -> None:
    """fastavro asks by type and logical type what a value is to become."""
    readers.LOGICAL_READERS |= {
        f"float-{OURS}finite": _finite,
        f"double-{OURS}finite": _finite,
        f"bytes-{OURS}base64": _base64,
        f"fixed-{OURS}base64": _base64,
        f"bytes-{OURS}decimal": _decimal,
        f"fixed-{OURS}decimal": _decimal,
    }


def _finite(value: float, writer: Any = None, reader: Any = None) -> Any:  # noqa: ARG001 - as fastavro calls it
    return value if value - value == 0.0 else _TOO_LARGE[value < 0]


def _base64(value: bytes, writer: Any = None, reader: Any = None) -> str:  # noqa: ARG001
    return b64encode(value).decode()


def _decimal(value: bytes, writer: Mapping[str, Any], reader: Any = None) -> Any:  # noqa: ARG001
    """Both are integers, so that the quotient is the nearest float64."""
    try:
        return int.from_bytes(value, signed=True) / 10 ** writer.get("scale", 0)
    except OverflowError:
        return _TOO_LARGE[value[0] >= 0x80]


def _marked(schema: Any) -> Any:
    """The schema with marks on what is to be turned into something else, and without any other logical type."""
    if isinstance(schema, list):
        return [_marked(one) for one in schema]
    if isinstance(schema, str):
        return {"type": schema, "logicalType": OURS + _MARKED[schema]} if schema in _MARKED else schema
    if not isinstance(schema, dict):
        raise BadSchema(f"{schema!r:.60} is no schema")
    kind = schema.get("type")
    if kind in _PLAIN:
        return kind
    marked = {name: value for name, value in schema.items() if name not in ("logicalType", "default")}
    if kind in ("bytes", "fixed"):
        scale = schema.get("scale", 0)
        is_decimal = (
            schema.get("logicalType") == "decimal" and type(scale) is int and 0 <= scale <= MOST_SCALE
        )
        marked["logicalType"] = OURS + ("decimal" if is_decimal else "base64")
    elif kind in _MARKED:
        return _marked(kind)
    elif kind == "array":
        marked["items"] = _marked(schema["items"])
    elif kind == "map":
        marked["values"] = _marked(schema["values"])
    elif kind in ("record", "error"):
        marked["fields"] = [_field(field) for field in schema["fields"]]
    elif kind != "enum":
        return _marked(kind)  # {"type": {"type": ...}}, or the name of a type
    return marked


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: value for name, value in field.items() if name != "default"},
        "type": _marked(field["type"]),
    }


def _smallest(schema: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> int:
    """The fewest bytes that a value takes. Raises BadSchema for what a few bytes could spell without end.

    A type within itself could be nested as deep as a record is long, and an array of what takes no bytes be of any
    length: both would end the process, or keep it busy for ever.
    """
    fewest = 1
    match schema:
        case list():
            fewest += min((_smallest(one, named, within) for one in schema), default=0)
        case str() if schema in named:
            if schema in within:
                raise BadSchema(f"the type {schema} contains itself; such schemas are not read")
            fewest = _smallest(named[schema], named, within)
        case str():
            fewest = {"null": 0, "float": 4, "double": 8}.get(schema, 1)
        case {"type": "record" | "error", "name": name, "fields": fields}:
            fewest = sum(_smallest(field["type"], named, (*within, name)) for field in fields)
        case {"type": "array", "items": items}:
            if _smallest(items, named, within) == 0:
                raise BadSchema("it has an array of what takes no bytes; such schemas are not read")
        case {"type": "map", "values": values}:
            _smallest(values, named, within)
        case {"type": "fixed", "size": size}:
            fewest = int(size)
        case {"type": "enum"}:
            pass
        case {"type": inner}:
            fewest = _smallest(inner, named, within)
    return fewest
