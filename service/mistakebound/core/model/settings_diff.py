"""Two epochs' settings side by side: flat keys, and what differs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A key that differs; None where one of the two does not have it, or where it is not set."""

    key: str
    """As TOML spells it: `labels.max_delay`."""
    before: Any
    after: Any


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs, by key. `true` and `1` differ, and so do `1` and `1.0`."""
    old, new = dict(_flat("", before)), dict(_flat("", after))
    return [
        Change(key, old.get(key), new.get(key))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key) or type(old.get(key)) is not type(new.get(key))
    ]


def _flat(path: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{path}{key}.", value)
        else:
            yield f"{path}{key}", value
