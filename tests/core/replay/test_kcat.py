"""What `kcat -J` prints is read as the records that it was printed from."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mistakebound.core.records import Record, Topic
from mistakebound.core.replay.kcat import begin, is_kcat
from mistakebound.core.replay.recording import RecordingError, encode_header

TOPICS: dict[str, Topic] = {"shop.payments": "examples", "shop.chargebacks": "labels"}


def line(**changes: Any) -> bytes:
    """A line with kcat 1.7's fields in their order."""
    fields = {"topic": "shop.payments", "partition": 0, "offset": 0, "tstype": "create", "ts": 5, "broker": 1}
    return (
        json.dumps({**fields, "key": "k", "payload": "{}", **changes}, separators=(",", ":")).encode() + b"\n"
    )


def read(*lines: bytes, partitions: int = 1) -> tuple[int, list[Record]]:
    header, records = begin(lambda: list(lines), TOPICS, partitions)
    return header.partitions, list(records)


def refused(*lines: bytes) -> str:
    with pytest.raises(RecordingError) as caught:
        read(*lines)
    return str(caught.value)


def test_a_line_is_the_record_it_was_printed_from() -> None:
    """The topic is known by its name on the broker; headers are names and values in turn."""
    headers = ["trace", "1", "empty", "", "null", None, "trace", "2"]
    partitions, records = read(
        line(headers=headers), b"\n", line(topic="shop.chargebacks", partition=5, offset=9)
    )

    trace = (("trace", b"1"), ("empty", b""), ("null", None), ("trace", b"2"))
    assert records == [
        Record("examples", 0, 0, 5, b"k", b"{}", trace),
        Record("labels", 5, 9, 5, b"k", b"{}"),
    ]
    assert partitions == 6


def test_partitions_without_records_are_there_where_the_settings_say_so() -> None:
    """kcat prints only what has records."""
    assert read(line(), partitions=4)[0] == 4
    assert read(partitions=2) == (2, [])


def test_null_and_empty_are_told_apart() -> None:
    """A tombstone has no payload, and an empty key is a key."""
    (record,) = read(line(key="", payload=None))[1]
    assert (record.key, record.value) == (b"", None)
    (record,) = read(line(key=None, payload=""))[1]
    assert (record.key, record.value) == (None, b"")


@pytest.mark.parametrize("changes", [{"ts": -1}, {"unknown": "ts"}])
def test_a_record_without_a_time_has_none(changes: dict[str, Any]) -> None:
    """Some versions leave the time out where the broker has none, or by mistake."""
    fields = json.loads(line(**changes))
    if "ts" not in changes:
        del fields["ts"]
    assert read(json.dumps(fields).encode())[1][0].timestamp_ms == -1


def test_bytes_that_are_not_utf8_come_back_as_they_were() -> None:
    """kcat writes them into its JSON as they are: no JSON then, but nothing is lost."""
    raw = bytes(byte for byte in range(256) if byte not in b'"\\' and byte >= 0x20)
    key, payload = b"\x00\x01\xffk", raw + '"ü\\'.encode()
    printed = (
        line(key="KEY", payload="PAYLOAD", headers=["h", "HEADER"])
        .replace(b"KEY", b"\\u0000\\u0001\xffk")
        .replace(b"PAYLOAD", raw + b'\\"\xc3\xbc\\\\')
        .replace(b"HEADER", b"\xfe")
    )
    (record,) = read(printed)[1]
    assert (record.key, record.value, record.headers) == (key, payload, (("h", b"\xfe"),))


def test_a_payload_that_was_made_json_is_its_text() -> None:
    """By kcat's Avro option, or by jq's `fromjson`."""
    text = b'{"id": "a", "features": {"x": 1.50}}'
    printed = line(payload="PAYLOAD").replace(b'"PAYLOAD"', text)
    assert read(printed)[1][0].value == text


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((line(), b"% Reached end of topic\n"), "line 2: JSON is malformed"),
        ((line(topic="orders"),), "line 1: topic = 'orders' is none of the settings' topics"),
        ((line(partition=-1),), "line 1: partition = -1, offset = 0"),
        ((line(partition="x"),), "line 1: Expected `int`"),
        ((line(offset=3), line(offset=3)), "line 2: offset = 3 of examples-0 comes after 3"),
        ((line(headers=["a"]),), "line 1: headers = ['a']"),
        ((line(headers=[None, "a"]),), "line 1: headers = [None, 'a']"),
        ((line(headers=[["a", "b"]]),), "line 1: Expected `str | null`, got `array`"),
        (
            (line(payload=None, payload_error="no schema"),),
            "line 1: kcat could not decode the payload (no schema)",
        ),
        ((line(payload="P").replace(b'"P"', b'"\xff'),), "line 1: Invalid control character"),
        ((b'{"topic":"\xff"}\n',), "line 1: "),
    ],
)
def test_a_line_that_kcat_never_prints_is_refused(lines: tuple[bytes, ...], told: str) -> None:
    """With its number, and what is wrong."""
    assert told in refused(*lines)


def test_records_are_read_one_by_one() -> None:
    """A file larger than memory is read twice, and never held."""
    alive: list[int] = []

    def lines() -> Iterator[bytes]:
        for offset in range(1_000):
            alive.append(offset)
            yield line(offset=offset)

    _, records = begin(lines, TOPICS)
    assert len(alive) == 1_000
    next(records)
    assert len(alive) == 1_001


def test_it_is_told_by_its_first_line() -> None:
    """A recording has a header first, labelled data has no topic."""
    assert is_kcat(line())
    assert is_kcat(b'{"topic": "a", "partition": 0, "offset": 1}')
    assert not is_kcat(encode_header(1))
    assert not is_kcat(b'{"features": {"topic": 1, "partition": 2}, "label": true}')
    assert not is_kcat(b"topic,partition,label\n")
