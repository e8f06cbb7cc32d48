"""What the worker's records are apart from what they say: their keys and headers, and how their content is spelled.

The worker writes a message in one way only. Content that is spelled in another way was written by somebody else, but for
fields that an earlier version did not know: those may be missing. Features are copied from others as they are.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from mistakebound.core.audit.compare import shown
from mistakebound.core.messages.schema import Update, encode
from mistakebound.core.records import Record

LATER = ("applied_late",)
"""Members that earlier versions did not write."""


def wrong_form(record: Record, message: Struct) -> str:
    """What is wrong with a record of `updates` or `outcomes`; empty where nothing is."""
    wrong = []
    key = message.id.encode() if isinstance(message, Update) else None
    if record.key != key:
        wrong.append(f"its key is {_text(record.key)}, should be {_text(key)}")
    if record.headers:
        wrong.append(
            f"it has headers {', '.join(repr(name) for name, _ in record.headers)}, should have none"
        )
    return "; ".join([*wrong, *filter(None, [wrong_spelling(record, message)])])


def wrong_spelling(record: Record, message: Struct) -> str:
    """What is wrong with how a record of the worker's spells its message; empty where nothing is."""
    if encode(message) == record.value:
        return ""
    try:
        said, known = msgspec.json.decode(record.value or b""), msgspec.json.decode(encode(message))
    except UnicodeDecodeError:
        return "its content is not UTF-8"
    differing = list(_differing("", said, known))
    if not differing:
        return "its content is not spelled as the worker spells it"
    return "; ".join(f"{path} {what}" for path, what in differing if path.rpartition(".")[2] not in LATER)


def _differing(path: str, said: Any, known: Any) -> Iterator[tuple[str, str]]:
    """Way and difference of each member that is not as known, or there and unknown, or known and not there."""
    if isinstance(said, dict) and isinstance(known, dict):
        for name in [*said, *(known.keys() - said.keys())]:
            where = f"{path}.{name}".lstrip(".")
            if name not in known:
                yield where, "is no member that the worker writes"
            elif name not in said:
                yield where, "is missing"
            else:
                yield from _differing(where, said[name], known[name])
    elif isinstance(said, list) and isinstance(known, list) and len(said) == len(known):
        for place, pair in enumerate(zip(said, known, strict=True)):
            yield from _differing(f"{path}.{place}", *pair)
    elif shown(said) != shown(known):
        yield path, f"is {shown(said)}, read as {shown(known)}"


def _text(key: bytes | None) -> str:
    return "absent" if key is None else repr(key.decode(errors="backslashreplace"))
