"""The settings as flat keys (`labels.max_delay`), for look-ups and the reference; and their JSON Schema."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeGuard, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import TimedeltaSchema

from mistakebound.config.masking import mask
from mistakebound.settings import Settings


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str
    types: frozenset[type]
    """The types that the field allows, out of `str, bool, int, float, timedelta, list`; a Literal counts as str."""
    choices: tuple[str, ...]
    """The only texts allowed; empty where others are."""
    default: Any
    meaning: str


@cache
def keys() -> dict[str, Key]:
    """Every key except those in open tables (`kafka`), in the order of the file."""
    return {
        f"{section}.{name}": _key(f"{section}.{name}", field)
        for section, model in Settings.model_fields.items()
        if _is_model(model.annotation)
        for name, field in model.annotation.model_fields.items()
    }


@cache
def open_tables() -> dict[str, str]:
    """Sections that take any key, with their meaning."""
    fields = Settings.model_fields
    return {
        name: field.description or "" for name, field in fields.items() if not _is_model(field.annotation)
    }


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _key(name: str, field: FieldInfo) -> Key:
    leaves = tuple(leaf for leaf in _leaves(field.annotation) if leaf is not type(None))
    types = frozenset(leaf if isinstance(leaf, type) else type(leaf) for leaf in leaves)
    choices = leaves if all(isinstance(leaf, str) for leaf in leaves) else ()
    default = field.get_default(call_default_factory=True, validated_data={})
    return Key(name, types, choices, default, field.description or "")


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types and literal values that an annotation is made of."""
    if hasattr(annotation, "__metadata__"):
        yield from _leaves(annotation.__origin__)
    elif (table := get_origin(annotation)) in (tuple, dict):
        yield list if table is tuple else dict  # as TOML and JSON write it
    elif arguments := get_args(annotation):
        for argument in arguments:
            yield from _leaves(argument)
    else:
        yield annotation


def toml_key(name: str) -> str:
    """Any text as a key of TOML."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def render_toml(value: Any) -> str:
    """A value as TOML writes it; None as an empty text."""
    match value:
        case None:
            return ""
        case timedelta():
            return f"{value.total_seconds():g}"
        case str():
            return toml_key(value)
        case list() | tuple():
            return f"[{', '.join(map(render_toml, value))}]"
        case dict():
            pairs = (f"{toml_key(name)} = {render_toml(inner)}" for name, inner in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)


def duration(value: timedelta) -> str:
    """The time in the largest unit that leaves no remainder."""
    seconds = value.total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file, with which an editor can complete and check it."""
    schema = Settings.model_json_schema(schema_generator=_FileSchema)
    return {"$schema": _FileSchema.schema_dialect, **schema, "title": "mistakebound.toml"}


class _FileSchema(GenerateJsonSchema):
    """Lets durations be seconds too: the settings accept both forms, pydantic's schema only ISO 8601."""

    def timedelta_schema(self, schema: TimedeltaSchema) -> JsonSchemaValue:
        return super().timedelta_schema(schema) | {"type": ["number", "string"], "minimum": 0}


def effective(settings: Settings) -> dict[str, Any]:
    """Every key's value in effect as a JSON value, secrets masked, in the order of the file."""
    document = settings.model_dump(mode="json")
    values = {key: document[key.partition(".")[0]][key.partition(".")[2]] for key in keys()}
    values |= {
        f"{section}.{name}": value for section in open_tables() for name, value in document[section].items()
    }
    return {key: mask(key, value) for key, value in values.items()}
