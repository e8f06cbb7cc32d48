"""Messages that other programs write, read by the settings that the page on envelopes names; and what becomes of the rest."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from mistakebound.config.checks import cautions
from mistakebound.core.records import Headers
from tests.core.support.feeding import Fed, Feeder
from tests.deploy.support.pages import DEPLOY, section

SCHEMA = {
    "type": "struct",
    "fields": [{"type": "int64", "optional": False, "field": "id"}],
    "optional": False,
}
SOURCE = {
    "version": "3.1.0.Final",
    "connector": "postgresql",
    "db": "shop",
    "table": "payments",
    "lsn": 34213136,
}
MICROSECONDS = 1_764_400_000_123_456


def debezium(row: Any, *, before: Any = None, op: str = "c") -> dict[str, Any]:
    return {
        "before": before, "after": row, "source": SOURCE, "op": op,
        "ts_ms": MICROSECONDS // 1000, "ts_us": MICROSECONDS, "transaction": None,
    }  # fmt: skip


def event(row: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0", "id": "A234-1234-1234", "source": "/shop/payments", "type": "com.example.payment",
        "time": "2026-11-29T07:00:00Z", "datacontenttype": "application/json", "data": row,
    }  # fmt: skip


ATTRIBUTES: Headers = (
    ("ce_specversion", b"1.0"),
    ("ce_id", b"A234-1234-1234"),
    ("ce_type", b"com.example.payment"),
    ("content-type", b"application/json"),
)
WRAPPED: dict[str, tuple[Callable[[Any], Any], Headers]] = {
    "Debezium, with schemas": (lambda row: {"schema": SCHEMA, "payload": debezium(row)}, ()),
    "Debezium, without schemas (`schemas.enable=false`)": (debezium, ()),
    "Debezium, flattened (`ExtractNewRecordState`)": (
        lambda row: {**row, "__deleted": "false", "__op": "c"},
        (),
    ),
    "Kafka Connect, with schemas": (lambda row: {"schema": SCHEMA, "payload": row}, ()),
    "CloudEvents, structured": (event, (("content-type", b"application/cloudevents+json; charset=UTF-8"),)),
    "CloudEvents, binary": (lambda row: row, ATTRIBUTES),
}
ROW = re.compile(r"^\| ([^|]+?) \| `([^|]*)` \| `([^|]*)` \| `(\[[^|]*\])` \|$", re.MULTILINE)
TABLE = {name: told for name, *told in ROW.findall(section(DEPLOY / "envelopes.md", "Other envelopes"))}


def feeder(name: str) -> Feeder:
    """As the table says."""
    record_id, features, exclude = TABLE[name]
    label = record_id.removesuffix("id") + "fraud"
    return Feeder(
        learner={"kind": "perceptron"},
        messages={"id": record_id, "features": features.strip('"'), "label": label},
        features={"exclude": json.loads(exclude), "bias": False},
    )


def reason(fed: Fed) -> str:
    (dead,) = fed.dead_letters
    return (dict(dead.headers)["mistakebound.reason"] or b"").decode()


def example(f: Feeder, value: Any, headers: Headers = (), key: bytes = b'{"id": 7}') -> Fed:
    text = None if value is None else json.dumps(value).encode()
    return f.feed(f.record("examples", 1, text, key=key, headers=headers))


def test_the_page_and_this_test_know_the_same_envelopes() -> None:
    """Each row of the page's table is tried here."""
    assert list(TABLE) == list(WRAPPED)


@pytest.mark.parametrize("name", WRAPPED)
def test_a_row_in_its_envelope_is_predicted_and_learned_from(name: str) -> None:
    """By its own id and columns alone; headers are carried on, and the settings are nothing to be warned of."""
    f, (wrap, headers) = feeder(name), WRAPPED[name]
    row = {"id": 7, "amount": 2.5, "country": "DE"}
    if name.startswith("Debezium"):
        row["created_at"] = MICROSECONDS
    fed = example(f, wrap(row), headers)
    fed_labels = f.feed(
        f.record("labels", 2, json.dumps(wrap({"id": 7, "fraud": True})).encode(), headers=headers)
    )
    (prediction,), (update,) = fed.predictions, fed_labels.updates
    assert (prediction["id"], prediction["features"]) == ("7", {"amount": 2.5, "country": "DE"})
    assert (update["id"], update["features"]) == ("7", {"amount": 2.5, "country": "DE"})
    assert [output.headers for output in fed.outputs if output.topic == "predictions"] == [headers]
    assert f.model.learner.theta() == {"amount": 2.5, "country=DE": 1.0}
    assert cautions(f.settings) == []


# --- what becomes of the rest ------------------------------------------------------------------------------

PLAIN = "Debezium, without schemas (`schemas.enable=false`)"
FLAT = "Debezium, flattened (`ExtractNewRecordState`)"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (PLAIN, None, "tombstone"),
        (PLAIN, debezium(None, before={"id": 7}, op="d"), "missing-features"),
        (PLAIN, debezium({"id": 7, "amount": None}), "missing-feature"),
        (PLAIN, debezium({"id": 7, "place": {"city": "Bonn"}}), "bad-features"),
        (PLAIN, debezium({"id": 7, "tags": ["a"]}), "bad-features"),
        (
            "CloudEvents, structured",
            {"specversion": "1.0", "id": "A", "data_base64": "e30="},
            "missing-features",
        ),
    ],
)
def test_what_is_no_row_is_a_dead_letter(name: str, value: Any, why: str) -> None:
    """As the page says, and the stream goes on."""
    f = feeder(name)
    assert reason(example(f, value)) == why
    assert example(f, WRAPPED[name][0]({"id": 8, "amount": 1})).predictions


def test_a_delete_among_the_labels_is_a_dead_letter() -> None:
    """There is no label in it; where the row is gone, its id is, too, unless the key is one."""
    f = feeder(PLAIN)
    assert (
        reason(f.feed(f.record("labels", 1, json.dumps(debezium(None, op="d")).encode(), key=b"7")))
        == "missing-label"
    )


def test_an_update_of_a_row_is_a_duplicate_and_another_label_a_conflict() -> None:
    """An id is predicted once, and labelled once."""
    f = feeder(PLAIN)
    true, false = (
        f.record("labels", 2, json.dumps(debezium({"id": 7, "fraud": fraud}, op="u")).encode())
        for fraud in (True, False)
    )
    example(f, debezium({"id": 7, "amount": 1}))
    assert example(f, debezium({"id": 7, "amount": 2}, op="u")).decided == [("duplicate", "7")]
    assert f.feed(true, false).decided == [("applied", "7"), ("conflict", "7")]


@pytest.mark.parametrize("text", ["BAg=", "12.50"])
def test_a_number_written_as_text_is_a_category(text: str) -> None:
    """A decimal in base64, and one in digits: each value is a feature of its own, which the page warns of."""
    f = feeder(PLAIN)
    example(f, debezium({"id": 7, "tax": text}))
    f.feed(f.record("labels", 2, json.dumps(debezium({"id": 7, "fraud": True})).encode()))
    assert f.model.learner.theta() == {f"tax={text}": 1.0}


def test_a_flattened_delete_is_an_example_like_others() -> None:
    """Its mark is no feature, by the page's patterns."""
    (prediction,) = example(feeder(FLAT), {"id": 7, "amount": 1, "__deleted": "true"}).predictions
    assert prediction["features"] == {"amount": 1}


def test_a_new_column_is_a_new_feature() -> None:
    """It weighs nothing until something is learned from it; under `include` it is not read."""
    f = feeder(PLAIN)
    example(f, debezium({"id": 7, "amount": 1}))
    (prediction,) = example(f, debezium({"id": 8, "amount": 1, "new": 3})).predictions
    assert prediction["features"] == {"amount": 1, "new": 3}


def test_without_an_id_in_the_data_the_records_key_is_it() -> None:
    """As CloudEvents' partition key, in binary mode."""
    f = feeder("CloudEvents, binary")
    (prediction,) = example(f, {"amount": 1}, ATTRIBUTES, key=b"order-7").predictions
    assert (prediction["id"], prediction["features"]) == ("order-7", {"amount": 1})


def test_an_event_of_numbers_alone_is_an_array() -> None:
    """The whole message may be one."""
    (prediction,) = example(feeder("CloudEvents, binary"), [1, 2], ATTRIBUTES, key=b"7").predictions
    assert prediction["features"] == [1, 2]
