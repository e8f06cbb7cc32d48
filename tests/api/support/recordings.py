"""A recording made of labelled rows."""

from collections.abc import Iterable
from random import Random

from mistakebound import Settings
from mistakebound.core.replay.recording import encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream


def rows(count: int, seed: int = 1) -> list[Row]:
    """Points of a plane, true above a line."""
    random = Random(seed)
    points = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(count)]
    return [Row(f"i{number}", {"x": x, "y": y}, x + y > 0.1) for number, (x, y) in enumerate(points)]


def recording_of(labelled: Iterable[Row]) -> list[bytes]:
    """The recording's lines: each label follows its example."""
    return [encode_header(1), *map(encode, as_stream(labelled, Settings(), 1, 0))]
