"""Add-a-feature: one private feature for each example, which makes any labelled data separable (lecture 6).

With a coordinate of its own, each example can be put on its side without moving the others. Only a second
pass over the same examples can profit from it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from msgspec import Raw, ValidationError, json

from mistakebound.core.replay.passes import Rows
from mistakebound.core.replay.replay import Row

PREFIX = "own feature of "


class WithPrivateFeatures:
    """Rows, each with one more feature, of value 1: its name has the row's id in it and is no other feature's."""

    def __init__(self, rows: Rows) -> None:
        """Reads all rows, for the names of their features."""
        self._rows = rows
        taken = {  # how many underscores the names that could be ours have before them
            len(name) - len(name.lstrip("_"))
            for row in rows
            for name in _names(_decoded(row.features))
            if name.lstrip("_").startswith(PREFIX)
        }
        self._prefix = "_" * next(n for n in count() if n not in taken) + PREFIX

    def __iter__(self) -> Iterator[Row]:
        return map(self._add, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int, /) -> Row:
        return self._add(self._rows[place])

    def _add(self, row: Row) -> Row:
        return row._replace(features=_with(_decoded(row.features), self._prefix + row.id))


def _decoded(features: Any) -> Any:
    """Text that holds a number too large stays as it is, for the reader to refuse."""
    try:
        return json.decode(features) if isinstance(features, Raw) else features
    except ValidationError:
        return features


def _names(features: Any) -> Iterable[str]:
    """Names that could equal ours: a text feature is named `name=text`, so it begins as its key does."""
    if isinstance(features, dict):
        return features
    return (token for token in features if isinstance(token, str)) if isinstance(features, list) else ()


def _with(features: Any, name: str) -> Any:
    """Arrays become the objects that they stand for; anything else is left for the reader to refuse."""
    if isinstance(features, dict):
        return {**features, name: 1.0}
    if isinstance(features, list):
        if all(isinstance(value, str) for value in features):
            return {**{token: float(count) for token, count in Counter(features).items()}, name: 1.0}
        if not any(isinstance(value, str) for value in features):
            return {**{str(place): number for place, number in enumerate(features)}, name: 1.0}
    return features
