"""Which of an example's features are read: `features.include` and `features.exclude`.

A pattern is a member's name, or a JSON pointer (RFC 6901) that begins at the features and may go into nested objects;
`*` stands for any text within one name. Without `include` every member is chosen, with it those that one of its patterns
matches; in both cases without those that a pattern of `exclude` matches. A nested value is named by its pointer without
the first slash.

What is not chosen is never looked at, whatever it holds, and is not copied into predictions and updates.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from mistakebound.settings import FeatureSettings

Path = tuple[str, ...]
"""The names on the way to a value, from the features on."""
MOST_REMEMBERED = 10_000
"""Ways whose choice is remembered; names come from others, and could be any number."""

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class Columns:
    """The choice by these patterns. Pure, but that it remembers what it chose, and which patterns matched nothing yet."""

    def __init__(self, include: Sequence[str] | None, exclude: Sequence[str] | None) -> None:
        self._include = None if include is None else [(text, _names(text)) for text in include]
        self._exclude = [(text, _names(text)) for text in exclude or ()]
        self.idle = {text for text, _ in (*(self._include or ()), *self._exclude)}
        """Patterns that no member matched so far."""
        self._chosen: dict[Path, bool] = {}

    def kept(self, raw: bytes) -> bytes:
        """Features as JSON text without what is not chosen; every value is left as it was written.

        Arrays, and what is not JSON, are left alone: `features.reader` chooses from the former and refuses the latter.
        """
        members = _object(raw)
        return raw if members is None else _encode(self._kept(members, ()))

    def named(self, features: dict[str, Any]) -> dict[str, Any]:
        """The values of decoded features that were `kept`, by their names. Raises ValueError with a name that comes twice."""
        found: dict[str, Any] = {}
        for path, value in self._values(features, ()):
            name = path[0] if len(path) == 1 else "/".join(map(_spelled, path))
            if name in found:
                raise ValueError(name)
            found[name] = value
        return found

    def takes(self, path: Path) -> bool:
        """Whether the value at the end of this way is chosen."""
        chosen = self._chosen.get(path)
        if chosen is None:
            included = self._include is None and len(path) == 1
            included = self._matches(self._include or (), path) or included
            chosen = not self._matches(self._exclude, path) and included
            if len(self._chosen) < MOST_REMEMBERED:
                self._chosen[path] = chosen
        return chosen

    def _kept(self, members: dict[str, Raw], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in members.items():
            here = (*path, name)
            if self.takes(here):
                found[name] = value
            elif self._leads_on(here) and (inner := _object(bytes(value))) is not None:
                rest = self._kept(inner, here)
                if rest:
                    found[name] = rest
        return found

    def _values(self, members: dict[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
        for name, value in members.items():
            here = (*path, name)
            if isinstance(value, dict) and not self.takes(here):
                yield from self._values(value, here)
            else:
                yield here, value

    def _leads_on(self, path: Path) -> bool:
        """Whether something further on may be chosen."""
        if self._matches(self._exclude, path):
            return False
        return any(
            len(names) > len(path) and all(map(_fits, names, path)) for _, names in self._include or ()
        )

    def _matches(self, patterns: Sequence[tuple[str, list[re.Pattern[str]]]], path: Path) -> bool:
        found = False
        for text, names in patterns:
            if len(names) == len(path) and all(map(_fits, names, path)):
                self.idle.discard(text)
                found = True
        return found


def idle(pattern: str, rules: FeatureSettings) -> str:
    """What to say of a pattern that nothing matched."""
    key = "features.exclude" if pattern in (rules.exclude or ()) else "features.include"
    return f"{key}: {pattern!r} matches no feature of any example so far; see also messages.features"


def columns_of(rules: FeatureSettings) -> Columns | None:
    """None where every member is read."""
    if rules.include is None and rules.exclude is None:
        return None
    return Columns(rules.include, rules.exclude)


def _names(pattern: str) -> list[re.Pattern[str]]:
    """What each name on a pattern's way must be."""
    names = [pattern]
    if pattern.startswith("/"):
        names = [part.replace("~1", "/").replace("~0", "~") for part in pattern.split("/")[1:]]
    return [re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL) for name in names]


def _fits(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.fullmatch(name) is not None


def _object(raw: bytes) -> dict[str, Raw] | None:
    try:
        return _members(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _spelled(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
