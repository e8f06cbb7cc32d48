"""Protobuf's types as JSON has them. The schemas are compiled by protoc, the bytes written by Google's own library."""

from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.formats.protobuf import Place, decoder
from mistakebound.core.messages.formats.schema_text import BadSchema, SchemaText
from mistakebound.worker.registry.protoc import compiled
from tests.support.serializers import message_type

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";

message Other { message Inner { int32 deep = 1; } string name = 1; }

enum Country { UNKNOWN = 0; DE = 1; }

message Payment {
  string id = 1;
  double amount = 2;
  optional double tip = 3;
  int64 cents = 4;
  Country country = 5;
  bool online = 6;
  bytes raw = 7;
  repeated float series = 8;
  map<string, int32> counts = 9;
  oneof means { string card = 10; string iban = 11; }
  google.protobuf.Timestamp at = 12;
  google.protobuf.Duration took = 13;
  google.protobuf.DoubleValue rate = 14;
  google.protobuf.Struct more = 15;
  Other other = 16;
}
"""
PAYMENT: Place = (1,)


@pytest.fixture(scope="module")
def shop() -> SchemaText:
    descriptors, wrong = compiled(SHOP, ())
    assert wrong is None
    return SchemaText("PROTOBUF", SHOP, compiled=descriptors)


def written(message: Any, name: str = "shop.Payment") -> bytes:
    body: bytes = json_format.ParseDict(message, message_type(SHOP, name)()).SerializeToString()
    return body


def test_fields_that_are_not_set_have_their_default_or_are_null(shop: SchemaText) -> None:
    """Null where the schema can tell that a field is not set; of a oneof there is what is set."""
    assert decoder(shop)(b"", PAYMENT) == {
        "id": "",
        "amount": 0.0,
        "tip": None,
        "cents": 0,
        "country": "UNKNOWN",
        "online": False,
        "raw": "",
        "series": [],
        "counts": {},
        "at": None,
        "took": None,
        "rate": None,
        "more": None,
        "other": None,
    }


def test_fields_that_are_set_are_values_of_json(shop: SchemaText) -> None:
    """64-bit integers are numbers, enums texts, times seconds, wrappers what they wrap."""
    message = {
        "id": "p-1",
        "amount": 2.5,
        "tip": 0.0,
        "cents": str(2**62),
        "country": "DE",
        "online": True,
        "raw": "AP8=",
        "series": [0.5, 1.5],
        "counts": {"b": 2, "a": 1},
        "iban": "DE00",
        "at": "2025-01-01T00:00:00.5Z",
        "took": "1.25s",
        "rate": 0.0,
        "more": {"n": None, "l": [1, "x", True], "s": {"d": 0.5}},
        "other": {"name": "o"},
    }
    found = decoder(shop)(written(message), PAYMENT)
    assert found == {
        **message,
        "cents": 2**62,
        "at": 1735689600.5,
        "took": 1.25,
        "other": {"name": "o"},
    }
    assert list(found["counts"]) == ["a", "b"]


def test_a_message_is_found_by_its_place_or_its_name(shop: SchemaText) -> None:
    """A place goes from the outermost message inwards; an empty name is the first message."""
    inner = written({"deep": 7}, "shop.Other.Inner")
    assert decoder(shop)(inner, (0, 0)) == {"deep": 7}
    assert decoder(shop)(inner, "shop.Other.Inner") == {"deep": 7}
    assert decoder(shop)(written({"name": "o"}, "shop.Other"), "") == {"name": "o"}
    for place in ((2,), (0, 1), "shop.Nobody"):
        with pytest.raises(BadSchema, match="no message at"):
            decoder(shop)(b"", place)


def test_a_number_of_an_enum_that_has_no_name_stays_a_number(shop: SchemaText) -> None:
    """Its producer knows a newer schema."""
    assert decoder(shop)(b"\x28\x09", PAYMENT)["country"] == 9


def test_a_number_that_is_not_finite_is_too_large_to_read(shop: SchemaText) -> None:
    """So that it is refused where it is looked at, and nowhere else."""
    assert bytes(decoder(shop)(written({"amount": "-Infinity"}), PAYMENT)["amount"]) == b"-1e999"


def test_a_text_that_does_not_compile_reads_nothing() -> None:
    """The schema holds what protoc said."""
    text = 'syntax = "proto3"; message M { Nothing n = 1; }'
    descriptors, wrong = compiled(text, ())
    assert descriptors is None
    assert wrong is not None
    assert '"Nothing" is not defined' in wrong
    with pytest.raises(BadSchema, match='"Nothing" is not defined'):
        decoder(SchemaText("PROTOBUF", text, wrong=wrong))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_message_or_an_error(shop: SchemaText, body: bytes) -> None:
    """Never anything that ends the process."""
    try:
        assert "id" in decoder(shop)(body, PAYMENT)
    except Exception as error:  # noqa: BLE001
        assert not isinstance(error, MemoryError)
