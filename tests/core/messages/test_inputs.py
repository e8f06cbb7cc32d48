"""Examples and labels as users write them: read as declared, or refused with a reason. Nothing else."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mistakebound.core.faults import REASONS, BadRecord
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.records import NAME_NOT_UTF8, Record, Topic
from mistakebound.settings import LabelSettings, LabelValue, MessageSettings

POINTED = {"id": "/meta/tx~1id", "features": "/rows/1/x~0y", "label": "/truth"}


def reader(messages: dict[str, str] | None = None, **labels: Any) -> InputReader:
    return InputReader(MessageSettings(**(messages or {})), LabelSettings(**labels))


def record(value: bytes | None, key: bytes | None = None, topic: Topic = "examples") -> Record:
    return Record(topic, 0, 0, 0, key, value)


def example_of(
    value: Any, key: bytes | None = None, messages: dict[str, str] | None = None
) -> tuple[str, Any]:
    record_id, raw, _ = reader(messages).example(record(json.dumps(value).encode(), key))
    return record_id, json.loads(raw)


def label_of(value: Any, key: bytes | None = None, **labels: Any) -> tuple[str, LabelValue]:
    record_id, label, _ = reader(**labels).label(record(json.dumps(value).encode(), key, "labels"))
    return record_id, label


def refused(
    topic: Topic, value: bytes | None, key: bytes | None = None, messages: dict[str, str] | None = None
) -> BadRecord:
    one = reader(messages)
    with pytest.raises(BadRecord) as caught:
        (one.example if topic == "examples" else one.label)(record(value, key, topic))
    assert caught.value.reason in REASONS
    assert len(caught.value.detail) < 400
    return caught.value


# --- ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "record_id"), [("tx-1", "tx-1"), (7, "7"), (-7, "-7"), (10**30, str(10**30)), ("é", "é")]
)
def test_an_id_is_text_or_an_integer(found: Any, record_id: str) -> None:
    """An integer stands for its decimal text, so 7 and "7" are one id."""
    assert example_of({"id": found, "features": {}})[0] == record_id
    assert label_of({"id": found, "label": True})[0] == record_id


@pytest.mark.parametrize("value", [{}, {"id": None}])
def test_a_missing_id_is_the_records_key(value: dict[str, Any]) -> None:
    """As Kafka users key their records anyway."""
    assert example_of({**value, "features": {}}, key="é-1".encode())[0] == "é-1"
    assert label_of({**value, "label": True}, key=b"tx-1")[0] == "tx-1"


def test_an_id_in_the_value_goes_before_the_key() -> None:
    """The key may be what users partition by."""
    assert example_of({"id": "tx-1", "features": {}}, key=b"customer-9")[0] == "tx-1"


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_an_id_takes_at_most_128_bytes(letter: str) -> None:
    """Bytes in UTF-8, not letters."""
    size = len(letter.encode())
    longest = letter * (128 // size)
    assert example_of({"id": longest, "features": {}})[0] == longest
    for value, key in [({"id": longest + "x" * size}, None), ({}, (longest + letter).encode())]:
        fault = refused("examples", json.dumps({**value, "features": {}}).encode(), key)
        assert fault.reason == "id-too-long"


# --- labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        *((True, True), (False, False), (1, True), (0, False), (-1, False)),
        *((1.0, True), (0.0, False), (-0.0, False), (-1.0, False)),
    ],
)
def test_undeclared_labels_are_true_and_false_in_all_their_spellings(label: Any, meant: bool) -> None:
    """They are published as truth values."""
    assert label_of({"id": "a", "label": label})[1] is meant


@pytest.mark.parametrize(
    ("positive", "negative"),
    [("spam", "ham"), (1, 0), (1, -1), (0, 1), (False, True), ("true", "false"), ("1", "0")],
)
def test_declared_labels_are_exactly_those(positive: Any, negative: Any) -> None:
    """1 is not true, and "1" is neither: what was not declared is unknown."""
    labels = {"positive": positive, "negative": negative}
    for value in (positive, negative):
        found = label_of({"id": "a", "label": value}, **labels)[1]
        assert (found, type(found)) == (value, type(value))
    known = [(type(value), value) for value in (positive, negative)]
    for other in (True, False, 1, 0, -1, "1", "0", "true", "false", "spam", 2, "", 1.5, 2.0, [], {}):
        if (type(other), other) not in known:
            with pytest.raises(BadRecord) as caught:
                label_of({"id": "a", "label": other}, **labels)
            assert caught.value.reason == "unknown-label"


@pytest.mark.parametrize("classes", [(1, 0), (1, -1), (0, 1), (3, 1, 2)])
def test_a_declared_integer_may_be_written_as_a_float(classes: tuple[int, ...]) -> None:
    """JSON has one kind of number: 1.0 and 1e0 are 1, and published as it was declared. Text is no number."""
    for value in classes:
        for spelled in (f"{value}.0", f"{value}e0"):
            raw = b'{"id":"a","label":' + spelled.encode() + b"}"
            found = reader(classes=classes).label(record(raw, None, "labels"))[1]
            assert (found, type(found)) == (value, int)
    with pytest.raises(BadRecord):
        label_of({"id": "a", "label": 1.0}, classes=("1", "0"))


def test_of_two_classes_the_first_is_the_positive_one() -> None:
    """Declared as a pair or as a list."""
    assert reader(positive="spam", negative="ham").classes == ("spam", "ham")
    assert reader(classes=("spam", "ham")).classes == ("spam", "ham")
    assert reader().classes == (True, False)


def test_open_classes_are_any_short_text() -> None:
    """Text only, so that a class has one spelling; as long as an id may be."""
    labels = {"classes": "open"}
    assert reader(**labels).classes == ()
    for text in ("", "spam", "true", "é" * 64):
        assert label_of({"id": "a", "label": text}, **labels) == ("a", text)
    for other in (True, 0, 1.5, [], {}, "é" * 65):
        with pytest.raises(BadRecord) as caught:
            label_of({"id": "a", "label": other}, **labels)
        assert caught.value.reason == "unknown-label"


# --- pointers ---------------------------------------------------------------------------------------


def test_pointers_reach_into_existing_messages() -> None:
    """RFC 6901: `~1` is a slash, `~0` a tilde, numbers are places in an array."""
    value = {"meta": {"tx/id": 5}, "rows": [{}, {"x~y": {"a": 1}}], "truth": True}
    assert example_of(value, messages=POINTED) == ("5", {"a": 1})
    one = reader(POINTED)
    assert one.label(record(json.dumps(value).encode(), topic="labels")) == ("5", True, None)


def test_an_empty_name_is_a_name() -> None:
    """The pointer `/` names the member ""."""
    assert example_of({"": {"a": 1}, "id": "x"}, messages={"features": "/"}) == ("x", {"a": 1})


@pytest.mark.parametrize("rows", [{}, [], [1], [{}, 7], [{}, {"x": 1}], {"1": 3}, "text", None])
def test_a_pointer_that_leads_nowhere_finds_nothing(rows: Any) -> None:
    """Whatever stands in its way."""
    value = json.dumps({"meta": {"tx/id": 5}, "rows": rows}).encode()
    assert refused("examples", value, messages=POINTED).reason == "missing-features"


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["examples", "labels"])
@pytest.mark.parametrize("messages", [{}, POINTED], ids=["plain", "pointed"])
def test_a_record_with_header_names_that_are_not_utf8_is_refused(
    topic: Topic, messages: dict[str, str]
) -> None:
    """Predictions and dead letters could not carry them on; three of the names are shown, in part."""
    names = [b"\xff1", b"\xff" * 50, None, b"\xff4"]
    headers = (*((NAME_NOT_UTF8, name) for name in names), ("fine", b"x"))
    one = reader(messages)
    with pytest.raises(BadRecord, match=r"header names that are not UTF-8: b'\\xff1'") as caught:
        (one.example if topic == "examples" else one.label)(Record(topic, 0, 0, 0, b"k", b"{}", headers))
    assert caught.value.reason == "bad-header"
    assert "and 1 more" in caught.value.detail
    assert caught.value.detail.count("\\xff") == 1 + 40


@pytest.mark.parametrize(
    ("topic", "value", "key", "reason"),
    [
        ("examples", None, b"k", "tombstone"),
        ("labels", None, b"k", "tombstone"),
        ("examples", b"\0\0\0\0\1{}", None, "schema-framing"),
        ("examples", b"", None, "not-json"),
        ("examples", b"{", None, "not-json"),
        ("examples", b'{"id":"a","features":{}} x', None, "not-json"),
        ("examples", b'{"id":"\xff","features":{}}', None, "not-json"),
        ("examples", b'{"id":"\\ud800, alone","features":{}}', None, "not-json"),
        ("examples", b'{"id":"a","features":' + b"[" * 100_000, None, "not-json"),
        ("labels", b'{"id":"a","label":NaN}', None, "not-json"),
        ("examples", b"[]", None, "not-an-object"),
        ("examples", b"null", None, "not-an-object"),
        ("labels", b"7", None, "not-an-object"),
        ("examples", b'{"features":{}}', None, "missing-id"),
        ("labels", b'{"label":true}', None, "missing-id"),
        ("examples", b'{"id":"","features":{}}', b"k", "missing-id"),
        ("examples", b'{"features":{}}', b"", "missing-id"),
        ("examples", b'{"features":{}}', b"\xff", "bad-id"),
        ("examples", b'{"id":1.5,"features":{}}', None, "bad-id"),
        ("examples", b'{"id":true,"features":{}}', None, "bad-id"),
        ("labels", b'{"id":["a"],"label":true}', None, "bad-id"),
        ("examples", b'{"id":%s,"features":{}}' % (b"9" * 5000), None, "bad-id"),
        ("examples", b'{"id":"%s","features":{}}' % (b"x" * 129), None, "id-too-long"),
        ("examples", b'{"id":"a"}', None, "missing-features"),
        ("examples", b'{"id":"a","features":null}', None, "missing-features"),
        ("labels", b'{"id":"a"}', None, "missing-label"),
        ("labels", b'{"id":"a","label":null}', None, "missing-label"),
        ("labels", b'{"id":"a","label":"yes"}', None, "unknown-label"),
        ("labels", b'{"id":"a","label":2}', None, "unknown-label"),
        ("labels", b'{"id":"a","label":1.5}', None, "unknown-label"),
        ("labels", b'{"id":"a","label":2.0}', None, "unknown-label"),
        ("labels", b'{"id":"a","label":1e300}', None, "unknown-label"),
        ("labels", b'{"id":"a","label":%d}' % 10**30, None, "unknown-label"),
        ("labels", b'{"id":"a","label":1e999}', None, "number-out-of-range"),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(
    topic: Topic, value: bytes | None, key: bytes | None, reason: str
) -> None:
    """The reason is a metric's label, the detail says what to do."""
    assert refused(topic, value, key).reason == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not-json"),
        (b'{"id":"\xff"}', "not-json"),
        (b'{"id":"a","more":1e999}', "number-out-of-range"),
        (b'{"id":"a","truth":true}', "missing-features"),
        (b'{"rows":[0,{"x~y":{}}]}', "missing-id"),
        (b'{"meta":{"tx/id":1.5},"rows":[0,{"x~y":{}}]}', "bad-id"),
        (b'{"meta":{"tx/id":true},"rows":[0,{"x~y":{}}]}', "bad-id"),
    ],
)
def test_pointed_messages_are_refused_with_the_same_reasons(value: bytes, reason: str) -> None:
    """One set of reasons, wherever the parts are."""
    assert refused("examples", value, messages=POINTED).reason == reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
messages = (
    st.dictionaries(st.sampled_from(["id", "features", "label", "rows", "truth"]), json_values) | json_values
)
raw_values = (
    st.none() | st.binary() | st.text().map(str.encode) | messages.map(lambda v: json.dumps(v).encode())
)


@given(raw_values, st.none() | st.binary())
@example(b'{"id":1,"label":%s}' % (b"[" * 993 + b"]" * 993), None)
@example(b'{"id":%s}' % (b"[" * 993 + b"]" * 993), None)
def test_any_bytes_are_a_message_or_refused(value: bytes | None, key: bytes | None) -> None:
    """A peer's record can never raise anything but BadRecord."""
    for one in (reader(), reader(POINTED), reader({"features": "/rows/0", "id": "/truth"}, positive="a")):
        for topic, read in (("examples", one.example), ("labels", one.label)):
            try:
                record_id, *_ = read(record(value, key, topic))  # type: ignore[operator]
            except BadRecord as fault:
                assert fault.reason in REASONS
                assert fault.detail
            else:
                assert 1 <= len(record_id.encode()) <= 128


@given(st.text(min_size=1, max_size=32), json_values.filter(lambda v: v is not None))
def test_features_are_copied_as_they_were_written(record_id: str, features: Any) -> None:
    """Not one space is changed: predictions carry the very text of the example."""
    text = json.dumps(features, indent=1, allow_nan=True)
    value = f'{{ "features" : {text} , "id": {json.dumps(record_id)}, "more": [1, {{}}] }}'.encode()
    try:
        got = reader().example(record(value))
    except BadRecord as fault:
        assert fault.reason == "not-json"
        assert "NaN" in text or "Infinity" in text or "\\ud" in text
    else:
        assert got == (record_id, text.encode(), None)
