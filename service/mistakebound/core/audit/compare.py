"""Records of the worker against what they should be: field by field, floats bit for bit."""

from math import isfinite, ulp
from struct import pack
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from mistakebound.core.learners import Score
from mistakebound.core.messages.schema import Prediction

ULPS = 4
"""Scores made with `exp` or a power may differ by this many units in the last place between processors."""


def score_of(prediction: Prediction) -> Score | None:
    """The recorded score or scores; None where there is neither."""
    if prediction.score is not UNSET:
        return prediction.score
    return None if prediction.scores is UNSET else prediction.scores


def same_score(recorded: Score | None, made: Score, *, ulps: int = 0) -> bool:
    """Whether they are equal to the bit, or within `ulps` units in the last place."""
    if isinstance(recorded, float) and isinstance(made, float):
        return _same(recorded, made, ulps)
    if isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        return all(_same(one, other, ulps) for one, other in zip(recorded, made, strict=True))
    return False


def _same(recorded: float, made: float, ulps: int) -> bool:
    if pack("<d", recorded) == pack("<d", made):
        return True
    if not ulps or not (isfinite(recorded) and isfinite(made)):
        return False
    return abs(recorded - made) <= ulps * ulp(max(abs(recorded), abs(made)))


def differing(recorded: Struct, made: Struct, *, leave: tuple[str, ...] = ()) -> str:
    """`field is X, should be Y` for every field that differs; empty where all are equal."""
    found = []
    for field in made.__struct_fields__:
        one, other = getattr(recorded, field), getattr(made, field)
        if field in leave or (shown(one) == shown(other) and type(one) is type(other)):
            continue
        found.append(f"{field} is {_brief(shown(one))}, should be {_brief(shown(other))}")
    return "; ".join(found)


def shown(value: Any) -> str:
    """A value as JSON text; equal texts, equal values. JSON copied from a record may hold bytes that are not UTF-8."""
    return "absent" if value is UNSET else msgspec.json.encode(value).decode(errors="backslashreplace")


def _brief(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


def canonical(state: Any) -> Any:
    """A learner's state as comparable values: names in order, floats as their bits."""
    if isinstance(state, float):
        return pack("<d", state)
    if isinstance(state, dict):
        return sorted((str(name), canonical(value)) for name, value in state.items())
    if isinstance(state, list | tuple):
        return [canonical(value) for value in state]
    return state
