"""Protobuf messages to the values of JSON, by the descriptors that their schema was compiled to.

Fields are named as in the schema and come in its order, those that are not set, too: with their default where they have
no presence, else as null; of a `oneof` only the one that is set. What JSON has no value for:

- Timestamp and Duration: seconds; wrappers: their value; Confluent's Decimal: the number nearest to it.
- an enum's name is a text, a number that it does not name stays one; bytes: base64.
- a number that is not finite: one too large to read, so that it is refused where it is looked at.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Raw

from mistakebound.core.messages.formats.schema_text import BadSchema, SchemaText

LIBRARY = "google.protobuf"
NANOS = 1_000_000_000
MOST_SCALE = 10_000

_TOO_LARGE = {False: Raw(b"1e999"), True: Raw(b"-1e999")}
Place = tuple[int, ...] | str
"""Where in the file a message's type is: indexes, outermost first, or its name; an empty name is the first one."""


def decoder(schema: SchemaText) -> Callable[[bytes, Place], Any]:
    """Read one message of the type at a place in the schema's file. Raises BadSchema.

    The decoder raises BadSchema where there is no such type, and whatever is wrong with a message.
    """
    if schema.compiled is None:
        raise BadSchema(f"it is no Protobuf file that can be read: {schema.wrong or 'it was not compiled'}")
    descriptors: Any = import_module(f"{LIBRARY}.descriptor_pb2")
    pools: Any = import_module(f"{LIBRARY}.descriptor_pool")
    factory: Any = import_module(f"{LIBRARY}.message_factory")
    pool = pools.DescriptorPool()
    try:
        files = descriptors.FileDescriptorSet.FromString(b64decode(schema.compiled)).file
        for one in files:
            pool.Add(one)
        own = files[-1]
        pool.FindFileByName(own.name)
    except Exception as error:  # noqa: BLE001 - whatever the library makes of others' schemas
        raise BadSchema(f"its descriptors cannot be read: {error!r:.200}") from None

    @cache
    def kind(place: Place) -> Any:
        try:
            return factory.GetMessageClass(pool.FindMessageTypeByName(_full_name(own, place)))
        except (KeyError, IndexError):
            raise BadSchema(f"it has no message at {place}") from None

    def decode(body: bytes, place: Place) -> Any:
        message = kind(place)()
        message.ParseFromString(body)
        return _object(message)

    return decode


def _full_name(file: Any, place: Place) -> str:
    if isinstance(place, str) and place:
        return place
    names, inner = [file.package] if file.package else [], file.message_type
    for index in place or (0,):
        names.append(inner[index].name)
        inner = inner[index].nested_type
    return ".".join(names)


def _object(message: Any) -> Any:
    kind = message.DESCRIPTOR
    special = _SPECIAL.get(kind.full_name)
    if special is not None:
        return special(message)
    found: dict[str, Any] = {}
    for field in kind.fields:
        name = field.name
        if field.is_repeated:
            found[name] = _many(field, getattr(message, name))
        elif field.has_presence and not message.HasField(name):
            if field.containing_oneof is None or field.containing_oneof.name == f"_{name}":
                found[name] = None
        else:
            found[name] = _one(field, getattr(message, name))
    return found


def _many(field: Any, values: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        return {_key(key): _one(of_value, values[key]) for key in sorted(values)}
    return [_one(field, value) for value in values]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key)


def _one(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    if field.message_type is not None:
        return _object(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> Any:
    return value if value - value == 0.0 else _TOO_LARGE[value < 0]


def _seconds(message: Any) -> float:
    """The quotient of two integers, so that it is the nearest float64."""
    whole: int = message.seconds * NANOS + message.nanos
    return whole / NANOS


def _wrapped(message: Any) -> Any:
    return _one(message.DESCRIPTOR.fields_by_name["value"], message.value)


def _decimal(message: Any) -> Any:
    unscaled = int.from_bytes(message.value, signed=True)
    scale = message.scale
    if not -MOST_SCALE <= scale <= MOST_SCALE:
        return _TOO_LARGE[unscaled < 0]
    try:
        return unscaled / 10**scale if scale >= 0 else float(unscaled * 10**-scale)
    except OverflowError:
        return _TOO_LARGE[unscaled < 0]


def _any_value(message: Any) -> Any:
    """A `google.protobuf.Value`: what JSON itself has."""
    kind = message.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    found = getattr(message, kind)
    if kind == "struct_value":
        return _struct(found)
    if kind == "list_value":
        return _list(found)
    return _finite(found) if kind == "number_value" else found


def _struct(message: Any) -> dict[str, Any]:
    return {name: _any_value(message.fields[name]) for name in sorted(message.fields)}


def _list(message: Any) -> list[Any]:
    return [_any_value(one) for one in message.values]


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _seconds,
    "google.protobuf.Duration": _seconds,
    "google.protobuf.Value": _any_value,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "confluent.type.Decimal": _decimal,
} | {
    f"google.protobuf.{name}Value": _wrapped
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
