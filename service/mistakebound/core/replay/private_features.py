"""Add-a-feature: one private feature for each example, which makes any labelled data separable (lecture 6).

With a coordinate of its own, each example can be put on its side without moving the others. Only a second
pass over the same examples can profit from it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import DecodeError, Raw, json

from mistakebound.core.replay.replay import Row

PREFIX = "own feature of "


def with_private_features(rows: Sequence[Row]) -> list[Row]:
    """Each row with one more feature, of value 1: its name has the row's id in it and is no other feature's."""
    rows = [
        row._replace(features=_decoded(row.features)) if isinstance(row.features, Raw) else row
        for row in rows
    ]
    prefix = PREFIX
    while any(name.startswith(prefix) for row in rows for name in _names(row.features)):
        prefix = "_" + prefix
    return [row._replace(features=_with(row.features, prefix + row.id)) for row in rows]


def _decoded(text: Raw) -> Any:
    """The JSON value; the text where it is none that can be held, such as 1e999: the reader refuses it."""
    try:
        return json.decode(text)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return text


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
