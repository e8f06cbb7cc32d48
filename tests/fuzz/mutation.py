"""Bytes that are nearly right: flips and cuts of any, and values exchanged within JSON and MessagePack."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

SPLICES = (
    b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r\n", b"\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":",
    b"null", b"NaN", b"Infinity", b"-0", b"1e999", b"1e-999", b"0x10", b"9" * 400, b'"\\ud800"', b"[" * 3_000,
    b'{"a":' * 3_000, b"\xef\xbb\xbf", b"%00", b" " * 5_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
)  # fmt: skip
"""Put anywhere: ends of text, of lines, of numbers and of patience."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.0, -0.0, 0.5, 1e308,
    -1e308, 5e-324, 1e16, "", "\0", "0", "1", "true", "null", "é\U0001f600", "BIAS", "a=b", "x" * 200, "x" * 70_000,
    [], {}, [[]], [{}], {"": 0}, ["a"], [1], [[1, 2]], ["a"] * 300, {"a": "b"}, {"a": [1]}, {"BIAS": 1}, [0] * 300,
)  # fmt: skip
"""Put in the place of any value."""

RAW: dict[str, bytes] = {
    "@nan": b"NaN",
    "@infinity": b"-Infinity",
    "@huge": b"1" + b"0" * 5_000,
    "@tiny": b"1e-99999",
    "@large": b"1e99999",
    "@deep": b"[" * 20_000 + b"]" * 20_000,
    "@deeper": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "@half": b'"\\ud800"',
    "@broken": b'"\xff\xfe"',
    "@twice": b'{"a":1,"a":2}',
}
"""What JSON text can hold but no Python value: named here, and put into the text at the end."""


def mutated(random: Random, good: bytes) -> bytes:
    """One to four changes of any kind."""
    for _ in range(random.choice((1, 1, 2, 4))):
        good = random.choice((_bytes, _json, _json, _json))(random, good)
    return good


def mutated_msgpack(random: Random, good: bytes) -> bytes:
    """The same for MessagePack."""
    for _ in range(random.choice((1, 1, 2, 3))):
        good = random.choice((_bytes, _msgpack, _msgpack, _msgpack))(random, good)
    return good


def _bytes(random: Random, data: bytes) -> bytes:
    at, to = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    flipped = bytes(byte ^ (1 << random.randrange(8)) for byte in data[at : at + 1])
    middle, end = random.choice(
        (
            (random.choice(SPLICES), at),
            (random.choice(SPLICES), to),
            (flipped, at + 1),
            (b"", len(data)),
            (data[at:to] * 2, to),
            (random.randbytes(random.randint(1, 4)), at),
        )
    )
    return data[:at] + middle + data[end:]


def _json(random: Random, data: bytes) -> bytes:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(random, data)
    odd = (*ODD, *RAW, 10**30)
    try:
        text = json.dumps(
            _exchanged(random, whole, lambda: random.choice(odd)), ensure_ascii=random.random() < 0.5
        )
    except (ValueError, RecursionError):
        return data
    found = text.encode("utf-8", "surrogatepass")
    for name, raw in RAW.items():
        found = found.replace(json.dumps(name).encode(), raw)
    return found


def _msgpack(random: Random, data: bytes) -> bytes:
    try:
        whole = msgspec.msgpack.decode(data)
        odd = (*ODD, float("nan"), float("inf"), float("-inf"), b"bytes")
        return msgspec.msgpack.encode(_exchanged(random, whole, lambda: random.choice(odd)))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return _bytes(random, data)


def _exchanged(random: Random, whole: Any, odd: Callable[[], Any]) -> Any:
    """One value somewhere within, changed, taken away, doubled or exchanged for another from within."""
    places: list[tuple[Any, Any]] = []
    walk(whole, places)
    if not places:
        return odd()
    holder, place = random.choice(places)
    how = random.randrange(8)
    if how < 4:
        holder[place] = odd()
    elif how == 4:
        del holder[place]
    elif how == 5:
        other, elsewhere = random.choice(places)
        if place in _keys(holder) and elsewhere in _keys(other):
            holder[place], other[elsewhere] = other[elsewhere], holder[place]
    elif isinstance(holder, list):
        holder.insert(place, odd() if how == 6 else holder[place])
    else:
        name = random.choice(("id", "features", "label", "", "x" * 300, "epoch", "format"))
        holder[name] = odd() if how == 6 else holder.pop(place)
    return whole


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def walk(value: Any, places: list[tuple[Any, Any]]) -> None:
    """Every place of a value within, as (holder, key or index), outer ones first."""
    if isinstance(value, dict):
        for name, inner in value.items():
            places.append((value, name))
            walk(inner, places)
    elif isinstance(value, list):
        for number, inner in enumerate(value[:200]):
            places.append((value, number))
            walk(inner, places)
