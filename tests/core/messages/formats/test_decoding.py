"""Examples and labels in other formats than JSON: read as declared, or refused with a reason. Nothing else."""

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.faults import REASONS, BadRecord
from mistakebound.core.messages import features
from mistakebound.core.messages.formats.schema_text import Reference, SchemaText, as_setting
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.records import Record, Topic
from mistakebound.settings import FeatureSettings, LabelSettings, MessageSettings

EXAMPLE = {
    "type": "record",
    "name": "Example",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "features",
            "type": {
                "type": "record",
                "name": "Features",
                "fields": [
                    {"name": "amount", "type": "double"},
                    {"name": "unused", "type": "double"},
                    {"name": "country", "type": ["null", {"type": "enum", "name": "C", "symbols": ["DE"]}]},
                    {
                        "name": "due",
                        "type": [
                            "null",
                            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                        ],
                    },
                ],
            },
        },
    ],
}
LABEL = {
    "type": "record",
    "name": "Label",
    "fields": [{"name": "id", "type": "string"}, {"name": "label", "type": ["null", "boolean"]}],
}
ORDERS = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "features": {"$ref": "numbers.json"}},
    "required": ["id", "features"],
}
NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
SCHEMAS = {
    "1": SchemaText("AVRO", json.dumps(EXAMPLE)),
    "2": SchemaText("AVRO", json.dumps(LABEL)),
    "3": SchemaText("AVRO", '"shop.Unknown"'),
    "4": SchemaText("JSON", json.dumps(ORDERS), [Reference("numbers.json", json.dumps(NUMBERS))]),
    "5": SchemaText("XML", "<schema/>"),
}


def avro(schema: Any, value: Any, schema_id: int | None) -> bytes:
    out = BytesIO()
    if schema_id is not None:
        out.write(b"\0" + schema_id.to_bytes(4))
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def an_example(schema_id: int | None = 1, **more: Any) -> bytes:
    values = {"amount": 2.5, "unused": 0.0, "country": "DE", "due": b"\x04\xd2", **more}
    return avro(EXAMPLE, {"id": "a", "features": values}, schema_id)


def reader(**messages: Any) -> InputReader:
    return InputReader(MessageSettings(**{"format": "avro", **messages}), LabelSettings())


def record(value: bytes | None, topic: Topic = "examples") -> Record:
    return Record(topic, 0, 0, 0, None, value)


def reason(value: bytes | None, topic: Topic = "examples", **messages: Any) -> str:
    one = reader(**messages)
    with pytest.raises(BadRecord) as caught:
        (one.example if topic == "examples" else one.label)(record(value, topic), SCHEMAS.get)
    assert caught.value.reason in REASONS
    assert len(caught.value.detail) < 500
    return caught.value.reason


def test_an_example_in_avro_is_the_same_example_in_json() -> None:
    """Its features are JSON from there on: numbers, categories and nulls."""
    found_id, raw, _ = reader().example(record(an_example()), SCHEMAS.get)
    assert found_id == "a"
    assert raw == b'{"amount":2.5,"unused":0.0,"country":"DE","due":12.34}'
    assert dict(features.reader(FeatureSettings())(raw)) == {
        "amount": 2.5,
        "unused": 0.0,
        "country=DE": 1.0,
        "due": 12.34,
        "BIAS": 1.0,
    }


def test_labels_may_be_in_another_format_than_examples() -> None:
    """Whoever settles a case seldom writes as whoever asked."""
    assert reader().label(record(avro(LABEL, {"id": "a", "label": True}, 2), "labels"), SCHEMAS.get)[:2] == (
        "a",
        True,
    )
    in_json = reader(labels_format="json")
    assert in_json.label(record(b'{"id":"a","label":true}', "labels"), SCHEMAS.get)[:2] == ("a", True)


def test_records_without_framing_are_read_by_the_schema_of_a_file() -> None:
    """Its id is the digest of what the file holds."""
    one = reader(examples_schema=as_setting(SCHEMAS["1"]))
    by_file = {one.decodings["examples"].file or "": SCHEMAS["1"]}
    assert one.example(record(an_example(None)), by_file.get)[0] == "a"


def test_a_message_of_json_schema_is_checked_by_it_and_by_what_it_refers_to() -> None:
    """Nothing else becomes of it."""
    body = b'{"id": "a", "features": {"x": 1.5}}'
    assert reader(format="json-schema").example(record(b"\0\0\0\0\4" + body), SCHEMAS.get)[:2] == (
        "a",
        b'{"x":1.5}',
    )
    for wrong in (b'{"id": "a"}', b'{"id": "a", "features": {"x": "y"}}'):
        assert reason(b"\0\0\0\0\4" + wrong, format="json-schema") == "schema-mismatch"
    assert reason(b"\0\0\0\0\4{", format="json-schema") == "not-json"


def test_a_number_that_is_not_finite_is_refused_where_it_is_a_feature_that_is_read() -> None:
    """What is not chosen is never looked at, as in JSON."""
    value = record(an_example(amount=float("nan")))
    raw = reader().example(value, SCHEMAS.get)[1]
    with pytest.raises(BadRecord) as caught:
        features.reader(FeatureSettings())(raw)
    assert caught.value.reason == "number-out-of-range"
    rules = FeatureSettings(exclude=("amount",))
    one = InputReader(MessageSettings(format="avro"), LabelSettings(), rules)
    assert dict(features.reader(rules)(one.example(value, SCHEMAS.get)[1]))["due"] == 12.34


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "tombstone"),
        (b"", "not-framed"),
        (b'{"id":"a","features":{}}', "not-framed"),
        (an_example(99), "unknown-schema"),
        (an_example(3), "bad-schema"),
        (an_example(4), "bad-schema"),
        (an_example(5), "bad-schema"),
        (an_example(2), "schema-mismatch"),
        (an_example()[:-1], "schema-mismatch"),
        (an_example() + b"x", "schema-mismatch"),
    ],
)
def test_whatever_is_wrong_has_a_reason(value: bytes | None, why: str) -> None:
    assert reason(value) == why


def test_a_framed_record_in_a_topic_of_json_says_what_to_set() -> None:
    with pytest.raises(BadRecord, match=r"set messages\.format"):
        InputReader(MessageSettings(), LabelSettings()).example(record(an_example()))


@given(
    st.binary(max_size=80), st.sampled_from(["avro", "json-schema"]), st.sampled_from(["examples", "labels"])
)
def test_arbitrary_bytes_are_a_message_or_a_bad_record(body: bytes, form: str, topic: Topic) -> None:
    """Behind a frame that names a schema, too; nothing else is ever raised."""
    one = reader(format=form)
    for prefix in (b"", *(b"\0\0\0\0" + bytes([number]) for number in range(1, 7))):
        try:
            (one.example if topic == "examples" else one.label)(record(prefix + body, topic), SCHEMAS.get)
        except BadRecord as fault:
            assert fault.reason in REASONS
