"""JSON messages checked against their JSON Schema. Checking is jsonschema's; nothing is fetched by a `$ref`.

A schema that names no version of JSON Schema is read as draft 7, as Confluent's serializers do.
"""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mistakebound.core.messages.formats.schema_text import BadSchema, SchemaText

LIBRARY = "jsonschema"


def checker(schema: SchemaText) -> Callable[[Any], None]:
    """What checks a decoded message. Raises BadSchema; the checker raises whatever is wrong with a message."""
    validators: Any = import_module(f"{LIBRARY}.validators")
    referencing: Any = import_module("referencing")
    draft: Any = import_module("referencing.jsonschema").DRAFT7
    try:
        whole = json.loads(schema.text)
        kind = validators.validator_for(whole, default=validators.Draft7Validator)
        kind.check_schema(whole)
        resources = [
            (one.name, referencing.Resource.from_contents(json.loads(one.text), default_specification=draft))
            for one in schema.references
        ]
        checked = kind(whole, registry=referencing.Registry().with_resources(resources))
    except Exception as error:  # noqa: BLE001 - whatever the library makes of others' schemas
        raise BadSchema(f"it is no JSON Schema that can be read: {error!r:.200}") from None

    def check(message: Any) -> None:
        wrong = next(checked.iter_errors(message), None)
        if wrong is not None:
            raise ValueError(f"{wrong.json_path}: {wrong.message}")

    return check
