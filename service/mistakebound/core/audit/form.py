"""What the worker's records are apart from what they say: their keys and headers, and how their content is spelled.

The worker writes a message in one way only. Content that is spelled in another way was written by somebody else, but for
fields that an earlier version did not know: those may be missing. Features are copied from others as they are.
"""

from typing import Any

import msgspec
from msgspec import Struct

from mistakebound.core.audit.compare import shown
from mistakebound.core.messages.schema import Update, encode
from mistakebound.core.records import Record


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
    said, known = msgspec.json.decode(record.value or b""), msgspec.json.decode(encode(message))
    missing: list[str] = []
    wrong = _beyond("", said, known, missing)
    if wrong:
        return f"{wrong} is not of the worker"
    # What an earlier version did not know is missing, and may have come in another order.
    return "" if missing else "its content is not spelled as the worker spells it"


def _beyond(path: str, said: Any, known: Any, missing: list[str]) -> str:
    """The first member that is there but not known, or not as known; what is known and not there goes to `missing`."""
    if isinstance(said, dict) and isinstance(known, dict):
        missing += [f"{path}.{name}" for name in known.keys() - said.keys()]
        for name, value in said.items():
            if name not in known:
                return f"{path}.{name}".lstrip(".")
            if wrong := _beyond(f"{path}.{name}", value, known[name], missing):
                return wrong
        return ""
    if isinstance(said, list) and isinstance(known, list) and len(said) == len(known):
        parts = (
            _beyond(f"{path}.{n}", *pair, missing) for n, pair in enumerate(zip(said, known, strict=True))
        )
        return next(filter(None, parts), "")
    return "" if shown(said) == shown(known) else path.lstrip(".")


def _text(key: bytes | None) -> str:
    return "absent" if key is None else repr(key.decode(errors="backslashreplace"))
