"""Avro's types as JSON has them, and records that are not of their schema. The bytes are written by fastavro."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.formats.avro import decoder
from mistakebound.core.messages.formats.schema_text import BadSchema, Reference, SchemaText

SHOWN = {
    "type": "record",
    "name": "Shown",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "country", "type": ["null", {"type": "enum", "name": "Country", "symbols": ["DE", "FR"]}]},
    ],
}


def written(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, body: bytes, *references: tuple[str, Any]) -> Any:
    known = [Reference(name, json.dumps(text)) for name, text in references]
    return decoder(SchemaText("AVRO", json.dumps(schema), known))(body)


def there_and_back(schema: Any, value: Any) -> Any:
    return read(schema, written(schema, value))


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ("boolean", True, True),
        ("int", -3, -3),
        ("long", 2**62, 2**62),
        ("float", 0.5, 0.5),
        ("double", 0.1, 0.1),
        ("string", "é", "é"),
        ("bytes", b"\0\xff", "AP8="),
        ({"type": "fixed", "name": "F", "size": 2}, b"\0\xff", "AP8="),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "array", "items": "double"}, [0.5, 1.5], [0.5, 1.5]),
        ({"type": "map", "values": ["null", "long"]}, {"a": 1, "b": None}, {"a": 1, "b": None}),
        (["null", "string", "double"], 0.5, 0.5),
        (["null", "string"], None, None),
    ],
)
def test_a_type_of_avro_is_what_json_has_for_it(schema: Any, value: Any, shown: Any) -> None:
    """A union is the value alone, an enum its symbol, bytes are base64."""
    assert there_and_back(schema, value) == shown


@pytest.mark.parametrize(
    ("kind", "logical", "value", "shown"),
    [
        ("int", "date", date(2025, 1, 2), 20090),
        ("int", "time-millis", time(0, 0, 1, 5000), 1005),
        ("long", "time-micros", time(0, 0, 1, 5), 1000005),
        ("long", "timestamp-millis", datetime(2025, 1, 1, tzinfo=UTC), 1735689600000),
        ("long", "timestamp-micros", datetime(2025, 1, 1, tzinfo=UTC), 1735689600000000),
        ("string", "uuid", UUID(int=1), str(UUID(int=1))),
    ],
)
def test_a_date_or_time_is_the_integer_that_is_written(
    kind: str, logical: str, value: Any, shown: Any
) -> None:
    """In the unit of its type, exactly, whatever a calendar could hold."""
    assert there_and_back({"type": kind, "logicalType": logical}, value) == shown


def test_a_time_beyond_every_calendar_is_a_number_like_any_other() -> None:
    """2^62 milliseconds are no date."""
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    assert read(schema, written("long", 2**62)) == 2**62


@given(st.integers(-(10**30), 10**30), st.integers(0, 20))
def test_a_decimal_is_the_nearest_number(unscaled: int, scale: int) -> None:
    """As Python rounds the decimal number itself."""
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 31, "scale": scale}
    value = Decimal(unscaled).scaleb(-scale)
    body = written("bytes", unscaled.to_bytes(16, signed=True))
    assert read(schema, body) == float(value)


def test_a_decimal_in_a_fixed_of_a_name_is_one_wherever_the_name_stands() -> None:
    """Connect's and Debezium's schemas name such types once."""
    money = {
        "type": "fixed",
        "name": "Money",
        "size": 4,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    }
    fields = [{"name": "a", "type": money}, {"name": "b", "type": ["null", "Money"]}]
    schema = {"type": "record", "name": "R", "fields": fields}
    assert there_and_back(schema, {"a": Decimal("12.34"), "b": Decimal("-0.05")}) == {"a": 12.34, "b": -0.05}


def test_a_number_that_is_not_finite_is_too_large_to_read() -> None:
    """So that it is refused where it is looked at, and nowhere else."""
    schema = {"type": "array", "items": "double"}
    found = there_and_back(schema, [float("nan"), float("inf"), float("-inf")])
    assert [bytes(one) for one in found] == [b"1e999", b"1e999", b"-1e999"]


def test_a_schema_may_refer_to_others_that_refer_to_others() -> None:
    """In the order in which the registry's references were resolved."""
    country = {"type": "enum", "name": "shop.Country", "symbols": ["DE", "FR"]}
    place = {"type": "record", "name": "shop.Place", "fields": [{"name": "country", "type": "shop.Country"}]}
    whole = {"type": "record", "name": "shop.Payment", "fields": [{"name": "at", "type": "shop.Place"}]}
    inner = {**place, "fields": [{"name": "country", "type": country}]}
    body = written({**whole, "fields": [{"name": "at", "type": inner}]}, {"at": {"country": "FR"}})
    assert read(whole, body, ("shop.Country", country), ("shop.Place", place)) == {"at": {"country": "FR"}}


def test_bytes_that_are_left_are_no_part_of_the_record() -> None:
    """A record of another schema is told by that, too."""
    with pytest.raises(ValueError, match="1 bytes are left"):
        read(SHOWN, written(SHOWN, {"id": "a", "amount": 1.0, "country": None}) + b"\0")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]},
            "contains itself",
        ),
        ({"type": "array", "items": "null"}, "takes no bytes"),
        ({"type": "record", "name": "R"}, "no Avro schema"),
        ("shop.Unknown", "no Avro schema"),
        (7, "is no schema"),
    ],
)
def test_a_schema_by_which_nothing_is_read_says_why(schema: Any, why: str) -> None:
    """A type within itself could end the process: one byte a level is enough."""
    with pytest.raises(BadSchema, match=why):
        decoder(SchemaText("AVRO", json.dumps(schema)))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_record_or_an_error(body: bytes) -> None:
    """Never anything that ends the process."""
    read_it = decoder(SchemaText("AVRO", json.dumps(SHOWN)))
    try:
        assert set(read_it(body)) == {"id", "amount", "country"}
    except Exception as error:  # noqa: BLE001
        assert not isinstance(error, MemoryError)
