"""Values that must never be written anywhere; they are known once the settings are read.

Masking by a key's name covers what is shown on purpose. This covers the rest: a library's message, a
traceback, a log line. The values are kept for the life of the process, which holds them anyway.
"""

import json
from urllib.parse import quote

MASK = "***"
SHORTEST = 4
"""Shorter values would mask harmless text as well, and give themselves away by that."""

_hidden: dict[str, None] = {}


def hide(value: str) -> None:
    """From now on `redacted` replaces this value, also as JSON, Python and URLs spell it."""
    if len(value) >= SHORTEST:
        spelled = (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
        _hidden.update(dict.fromkeys((*spelled, repr(value)[1:-1], quote(value), quote(value, safe=""))))


def redacted(text: str) -> str:
    """The text with `***` for every hidden value, the longest first."""
    for value in sorted(_hidden, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
