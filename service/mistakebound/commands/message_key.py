"""The key under which a message is sent: its id, so that an example and its label share a partition. Pure."""

import json
from typing import Any

from mistakebound.commands.errors import CommandError


def key_of(value: bytes, pointer: str, line: int) -> bytes:
    """The id's text as bytes. Raises CommandError naming the line for what is not a message with an id."""
    try:
        found = json.loads(value)
    except ValueError as error:
        raise _wrong(line, f"not JSON: {error}", "Write one JSON object a line") from None
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return _text(found, pointer, line).encode("utf-8")


def _text(found: Any, pointer: str, line: int) -> str:
    match found:
        case bool():
            wrong = f"id = {str(found).lower()} is not an id"
        case int():
            return str(found)
        case str() if found:
            return found
        case _:
            wrong = f"no id at messages.id = {pointer}" if found is None else f"id = {found!r} is not an id"
    raise _wrong(line, wrong, "An id is a string or an integer; messages.id says where it is")


def _wrong(line: int, wrong: str, remedy: str) -> CommandError:
    return CommandError(f"line {line}: {wrong}. {remedy}")
