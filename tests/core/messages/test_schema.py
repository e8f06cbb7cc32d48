"""The worker's messages: floats keep their bits, schemas describe what is really written."""

import json
from functools import cache
from itertools import count
from struct import pack
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mistakebound.core.faults import BadLog, BadRecord
from mistakebound.core.messages.features import LARGEST
from mistakebound.core.messages.schema import (
    FORMAT,
    Decision,
    Epoch,
    Outcomes,
    encode,
    read_outcomes,
    read_prediction,
    read_update,
    schemas,
)
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import Record, Topic
from mistakebound.settings import Settings
from tests.core.support.feeding import Fed, Feeder

HARD = [
    5e-324,
    -5e-324,
    -0.0,
    0.30000000000000004,
    2.2250738585072014e-308,
    1e22,
    9007199254740993.0,
    LARGEST,
]
numbers = st.floats(-LARGEST, LARGEST)


def bits(values: Any) -> bytes:
    return b"".join(pack("<d", value) for value in values)


def lively() -> Fed:
    """A stream in which every kind of record is written."""
    feeder = Feeder(labels={"max_delay": 10, "max_waiting": 3})
    at = count(1000, 500)
    return feeder.feed(
        feeder.example("a", next(at), {"x": 1.5, "y": "red", "z": True}),
        feeder.example(7, next(at), [1, 2]),
        feeder.example("c", next(at), ["free", "money"]),
        feeder.example("a", next(at)),
        feeder.example("d", next(at), {}),
        feeder.record("examples", next(at), b"{"),
        feeder.label("early", 1100),
        feeder.label("a", next(at)),
        feeder.label(7, next(at), False),
        feeder.label(7, next(at), 1),
        feeder.label("c", 90_000, -1),
        feeder.label("late", 90_001, True, features={"x": 1}, prediction=False),
        feeder.example("e", 9_000_000),
        max_records=2,
    )


# --- bits -------------------------------------------------------------------------------------------


@given(st.lists(numbers, max_size=6))
@example(HARD)
def test_a_features_bits_survive_prediction_and_update(values: list[float]) -> None:
    """What a reader of `predictions` or `updates` decodes is what the user's float64 were."""
    feeder = Feeder(features={"bias": False}, learner={"kind": "perceptron"})
    fed = feeder.feed(feeder.example("a", 1, values), feeder.label("a", 2))
    for written in (fed.predictions[0], fed.updates[0]):
        assert bits(written["features"]) == bits(values)
    assert bits(feeder.model.learner.dump()["theta"][0].values()) == bits([0.0 + x for x in values])


@given(numbers, numbers)
@example(0.1, 3.0)
def test_a_scores_bits_survive_the_prediction(weight: float, value: float) -> None:
    """An auditor compares scores for equality, so they must not be rounded on the way."""
    feeder = Feeder(features={"bias": False}, learner={"kind": "perceptron"})
    feeder.model.learner.load({"theta": [{"a": weight}]})
    (published,) = feeder.feed(feeder.example("x", 1, {"a": value})).predictions
    assert bits([published["score"]]) == bits([0.0 + weight * value])


# --- schemas ----------------------------------------------------------------------------------------


@cache
def validator(topic: Topic) -> jsonschema.Draft202012Validator:
    schema = schemas()[topic]
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check(topic: Topic, value: Any) -> None:
    validator(topic).validate(value)


@pytest.mark.parametrize("topic", ["predictions", "outcomes", "updates"])
def test_what_the_worker_writes_is_what_the_schema_says(topic: Topic) -> None:
    """Every record of a lively stream validates."""
    values = lively().values(topic)
    assert values
    for value in values:
        check(topic, value)


def test_an_epochs_first_record_is_in_the_schema_of_updates() -> None:
    """Settings and all."""
    check("updates", json.loads(encode(first_epoch(Settings()))))


@pytest.mark.parametrize(
    ("topic", "value"),
    [
        ("examples", {"id": "a", "features": {"x": 1, "y": "red", "z": True, "n": None}}),
        ("examples", {"id": 7, "features": [1, 2.5]}),
        ("examples", {"features": ["free", "money"], "more": {}}),
        ("labels", {"id": "a", "label": True}),
        ("labels", {"id": 7, "label": -1}),
        ("labels", {"label": "spam", "more": []}),
        ("labels", {"id": "a", "label": True, "features": {"x": 1}, "prediction": False}),
        ("labels", {"id": "a", "label": True, "features": ["free"], "prediction": None}),
        ("labels", {"id": "a", "label": True, "features": 3}),
    ],
)
def test_what_users_may_write_is_in_the_schemas(topic: Topic, value: Any) -> None:
    """Every form of features, every form of label; further members are the users' own."""
    check(topic, value)


WRONG: list[tuple[Topic, Any]] = [
    ("examples", {}),
    ("examples", []),
    ("examples", {"id": "a"}),
    ("examples", {"id": 1.5, "features": {}}),
    ("examples", {"id": "a", "features": 3}),
    ("examples", {"id": "a", "features": {"x": [1]}}),
    ("examples", {"id": "a", "features": {"BIAS": 1}}),
    ("examples", {"id": "a", "features": ["BIAS"]}),
    ("examples", {"id": "a", "features": ["a", 1]}),
    ("examples", {"id": "a", "features": [True]}),
    ("labels", {}),
    ("labels", {"id": "a"}),
    ("labels", {"id": "a", "label": None}),
    ("labels", {"id": "a", "label": 0.5}),
    ("labels", {"id": ["a"], "label": True}),
    ("labels", {"id": "a", "label": True, "features": 3, "prediction": True}),
    ("labels", {"id": "a", "label": True, "features": {}, "prediction": 0.5}),
]


@pytest.mark.parametrize(("topic", "value"), WRONG)
def test_what_would_be_a_dead_letter_is_not_in_the_schema(topic: Topic, value: Any) -> None:
    """A producer can check before sending, and the reader says the same."""
    with pytest.raises(jsonschema.ValidationError):
        check(topic, value)
    feeder = Feeder()
    feeder.feed(feeder.record(topic, 1, json.dumps(value).encode(), key=b"k"))
    assert getattr(feeder.ledger.tallies.life, topic)["invalid"] == 1


@pytest.mark.parametrize("topic", ["predictions", "outcomes", "updates"])
def test_a_record_without_one_of_its_members_is_not_in_the_schema(topic: Topic) -> None:
    """Each member that a reader needs is required."""
    value = lively().values(topic)[0]
    name = {"predictions": "Prediction", "outcomes": "Outcomes", "updates": "Update"}[topic]
    for member in schemas()[topic]["$defs"][name]["required"]:
        with pytest.raises(jsonschema.ValidationError):
            check(topic, {key: part for key, part in value.items() if key != member})


def test_dead_letters_have_no_schema() -> None:
    """They hold whatever was sent."""
    assert set(schemas()) == {"examples", "labels", "predictions", "outcomes", "updates"}


# --- reading ----------------------------------------------------------------------------------------


def own(topic: Topic, value: bytes | None) -> Record:
    return Record(topic, 3, 17, 0, None, value)


@given(
    st.none() | st.binary() | st.sampled_from([b"{}", b"[]", b'{"epoch":1,"format":9e999}', b'{"part":"0"}'])
)
def test_a_foreign_record_in_the_workers_own_topics_stops_the_reader(value: bytes | None) -> None:
    """Skipping it would be another model; the error says where it is."""
    for topic, read in (
        ("predictions", read_prediction),
        ("outcomes", read_outcomes),
        ("updates", read_update),
    ):
        with pytest.raises(BadLog, match=f"{topic}-3 offset 17"):
            read(own(topic, value))  # type: ignore[operator]


def test_a_format_of_the_future_stops_the_reader() -> None:
    """It says which, and what this version reads."""
    value = encode(Epoch(2, FORMAT + 1, {}))
    with pytest.raises(BadLog, match=f"format {FORMAT + 1}; this version reads {FORMAT}"):
        read_update(own("updates", value))


def test_an_update_on_a_feature_named_format_is_no_epoch() -> None:
    """The two kinds of record in `updates` are told apart by their members, not by users' names."""
    feeder = Feeder(labels={"positive": "", "negative": "n"})
    fed = feeder.feed(feeder.example("i", 1, {"format": 9}), feeder.label("i", 2, ""))
    (value,) = [output.value for output in fed.outputs if output.topic == "updates"]
    assert not isinstance(read_update(own("updates", value)), Epoch)


def test_absent_members_are_left_out() -> None:
    """A decision takes no more bytes than it says."""
    assert encode(Decision("invalid", None, None, 3)) == b'{"outcome":"invalid","label_offset":3}'
    version = Feeder().model.version()
    assert b"null" not in encode(Outcomes(0, version, [Decision("duplicate", "a", 1)]))


def test_faults_say_reason_and_detail() -> None:
    """In one line."""
    assert str(BadRecord("oversize", "too large")) == "oversize: too large"
