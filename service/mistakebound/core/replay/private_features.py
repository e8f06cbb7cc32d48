"""Add-a-feature: one private feature for each example, which makes any labelled data separable (lecture 6).

With a coordinate of its own, each example can be put on its side without moving the others. Only a second
pass over the same examples can profit from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw, json

from mistakebound.core.replay.replay import Row

PREFIX = "own feature of "


def with_private_features(rows: Sequence[Row]) -> list[Row]:
    """Each row with one feature more, of value 1, named by its id and like no feature of any row."""
    rows = [row._replace(features=_values(row.features)) for row in rows]
    prefix = PREFIX
    while any(name.startswith(prefix) for row in rows for name in _names(row.features)):
        prefix = "_" + prefix
    return [row._replace(features=_with(row.features, prefix + row.id)) for row in rows]


def _values(features: Any) -> Any:
    """As JSON values."""
    return json.decode(features) if isinstance(features, Raw) else features


def _names(features: Any) -> Iterable[str]:
    """Names that could meet ours: a text feature is `name=text`, so its name begins like its key."""
    if isinstance(features, dict):
        return features
    return (token for token in features if isinstance(token, str)) if isinstance(features, list) else ()


def _with(features: Any, name: str) -> Any:
    """Arrays become the objects that they stand for; what is neither is left for the reader to refuse."""
    if isinstance(features, dict):
        return {**features, name: 1.0}
    if isinstance(features, list):
        if all(isinstance(value, str) for value in features):
            return {**_counted(features), name: 1.0}
        if not any(isinstance(value, str) for value in features):
            return {**dict(_placed(features)), name: 1.0}
    return features


def _counted(tokens: Iterable[str]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for token in tokens:
        counts[token] = counts.get(token, 0.0) + 1.0
    return counts


def _placed(numbers: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(place), number) for place, number in enumerate(numbers))
