"""Raw features, as a user writes them, to ordered (name, value) pairs, as a learner reads them.

The order is the record's own, BIAS last; every score is added up in this order, so that it has the
same bits on every worker. Three forms: an object of name to number, text, truth value or null; an
array of numbers (named "0", "1", ...); an array of tokens (each counts 1, repeats add up).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from math import sqrt
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.columns import Columns, columns_of
from mistakebound.core.messages.crossing import crossed
from mistakebound.settings import FeatureSettings

BIAS = "BIAS"
LARGEST = 1e100
"""Larger values are refused: up to this one neither a square nor any sum of theta can overflow."""
SMALLEST_SQUARE = 1e-290
"""Below it the squares of values that are not 0 have lost digits, or are 0."""

Features = Collection[tuple[str, float]]
"""Pairs in the record's order, BIAS last; never changed. Mostly a view of a dict, which makes no pairs until they are
asked for, and gives the collector of cycles nothing to look through."""

SCHEMA: dict[str, Any] = {
    "description": "Named values; or numbers named by their place; or tokens that count 1 each.",
    "anyOf": [
        {
            "type": "object",
            "propertyNames": {"not": {"const": BIAS}},
            "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
        },
        {"type": "array", "items": {"type": "number"}},
        {"type": "array", "items": {"type": "string", "not": {"const": BIAS}}},
    ],
}


_numbers = msgspec.json.Decoder(dict[str, Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]]).decode
"""Nearly all features are this; `read` accepts or refuses all others."""


class Decode(Protocol):
    """From the JSON text of features, and the tenant whose they are, to pairs. Raises BadRecord as `read` does."""

    def __call__(self, raw: bytes, tenant: str | None = None) -> Features: ...


def reader(rules: FeatureSettings) -> Decode:
    """The decoder by these rules."""
    plain = not rules.scale and rules.normalize == "none" and rules.cross is None
    columns = columns_of(rules)

    def decode(raw: bytes, tenant: str | None = None) -> Features:
        if columns is not None:  # of an older epoch there may be more
            raw = columns.kept(raw)
        try:
            numbers = _numbers(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return read(_decoded(raw), rules, tenant, columns)
        if plain and BIAS not in numbers:
            if rules.bias:
                numbers[BIAS] = 1.0
            return numbers.items()
        return read(numbers, rules, tenant)

    return decode


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.ValidationError as error:
        # In well-formed untyped JSON only a number can be wrong: too large.
        raise BadRecord("number-out-of-range", f"features: {error}; keep within {LARGEST:g}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRecord("not-json", f"features: {error}; send JSON in UTF-8") from None


def read(
    value: Any, rules: FeatureSettings, tenant: str | None = None, columns: Columns | None = None
) -> Features:
    """Turn decoded JSON into (name, value) pairs, finite, in order, BIAS last: scaled, then crossed, then normalised.

    `columns`: of features that are `kept` by them. Raises BadRecord, naming the feature, the value and the remedy.
    """
    if type(value) is dict:
        pairs = _named(value if columns is None else _flat(value, columns), rules)
    elif type(value) is list:
        pairs = _listed(value, columns)
    else:
        raise BadRecord("bad-features", f"features is {_show(value)}; send an object or an array")
    if rules.scale:
        pairs = _scaled(pairs, rules.scale)
    if rules.bias:
        pairs.append((BIAS, 1.0))
    if rules.cross is not None:
        if tenant is None:  # of an epoch that crossed nothing
            raise BadRecord("missing-tenant", "the example was read without a tenant; see features.cross")
        pairs = crossed(pairs, tenant, shared=rules.cross_shared is True)
    if rules.normalize == "unit":
        pairs = _unit(pairs)
    return tuple(pairs)


def _flat(value: dict[str, Any], columns: Columns) -> dict[str, Any]:
    try:
        return columns.named(value)
    except ValueError as twice:
        raise BadRecord(
            "bad-features", f"a nested value and a feature are both named {str(twice)!r}; rename one"
        ) from None


def _named(value: dict[str, Any], rules: FeatureSettings) -> list[tuple[str, float]]:
    pairs: list[tuple[str, float]] = []
    texts = False
    if BIAS in value:
        raise BadRecord("bad-features", f"feature name {BIAS!r} is reserved; rename the feature")
    for name, x in value.items():
        kind = type(x)
        if kind is float and -LARGEST <= x <= LARGEST:
            pairs.append((name, x))
        elif kind is float or kind is int:
            pairs.append((name, _number(name, x)))
        elif kind is bool:
            pairs.append((name, 1.0 if x else 0.0))
        elif kind is str:
            texts = True
            pairs.append((f"{name}={x}", 1.0))
        elif x is None:
            if rules.missing == "reject":
                raise BadRecord(
                    "missing-feature",
                    f"feature {name!r} is null; leave it out or set features.missing = 'skip'",
                )
        else:
            raise BadRecord(
                "bad-features", f"feature {name!r} is {_show(x)}; send a number, text or truth value"
            )
    if texts and (len({name for name, _ in pairs}) < len(pairs) or any(name == BIAS for name, _ in pairs)):
        raise BadRecord(
            "bad-features", "a text feature `name=value` meets another feature of that name; rename one"
        )
    return pairs


def _listed(value: list[Any], columns: Columns | None) -> list[tuple[str, float]]:
    if {*map(type, value)} <= {str}:
        value = value if columns is None else [token for token in value if columns.takes((token,))]
        if BIAS in value:
            raise BadRecord("bad-features", f"token {BIAS!r} is reserved; rename the token")
        counts = dict.fromkeys(value, 1.0)
        if len(counts) < len(value):
            counts = {token: float(count) for token, count in Counter(value).items()}
        return list(counts.items())
    pairs = []
    for index, x in enumerate(value):
        if columns is not None and not columns.takes((str(index),)):
            continue
        if type(x) is not float and type(x) is not int:
            raise BadRecord(
                "bad-features",
                f"feature {str(index)!r} is {_show(x)}; an array holds numbers only, or tokens only",
            )
        pairs.append((str(index), _number(str(index), x)))
    return pairs


def _number(name: str, x: Any) -> float:
    # `x: Any`: compiled code would turn a declared float into one, and no longer show an integer as sent.
    if not -LARGEST <= x <= LARGEST:
        raise BadRecord("number-out-of-range", f"feature {name!r} is {_show(x)}; keep within {LARGEST:g}")
    return float(x)


def _scaled(
    pairs: list[tuple[str, float]], scale: Mapping[str, tuple[float, float]]
) -> list[tuple[str, float]]:
    """(x - centre)/width for features that have both; all others stay as they are."""
    scaled = []
    for name, x in pairs:
        value = x
        if (known := scale.get(name)) is not None:
            centre, width = known
            value = (x - centre) / width
            if not -LARGEST <= value <= LARGEST:
                raise BadRecord(
                    "number-out-of-range",
                    f"feature {name!r} is {_show(x)}, {value:g} once scaled; keep within {LARGEST:g}",
                )
        scaled.append((name, value))
    return scaled


def _unit(pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    square = 0.0
    for _, x in pairs:
        square += x * x
    if square < SMALLEST_SQUARE:
        return _unit_of_tiny(pairs)
    length = sqrt(square)
    return [(name, x / length) for name, x in pairs]


def _unit_of_tiny(pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The same with the largest brought to 1 first, so that the sum of squares is at least 1."""
    largest = 0.0
    for _, x in pairs:
        largest = max(largest, abs(x))
    if largest == 0.0:
        raise BadRecord(
            "zero-vector", "all features are 0 and features.normalize = 'unit'; send one that is not"
        )
    return _unit([(name, x / largest) for name, x in pairs])


def _show(value: Any) -> str:
    if isinstance(value, list | dict):  # its repr can be too deep, or too long to make for 60 characters
        return "an array" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."
