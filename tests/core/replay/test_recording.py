"""Recordings: what goes in comes out, and anything else is refused by line and field."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.records import TOPICS, Record
from mistakebound.core.replay.recording import RecordingError, begin, decode, encode, encode_header

PARTITIONS = 3
_bytes = st.none() | st.binary() | st.text().map(str.encode) | st.sampled_from([b"", b"\xff", b"\n", b'"'])
_headers = st.lists(st.tuples(st.text(), _bytes), max_size=3).map(tuple)
_records = st.builds(
    Record,
    topic=st.sampled_from(TOPICS),
    partition=st.integers(0, PARTITIONS - 1),
    offset=st.just(0),
    timestamp_ms=st.integers(-1, 2**53),
    key=_bytes,
    value=_bytes,
    headers=_headers,
)
RECORD = Record("examples", 0, 0, 1_700_000_000_000, b"tx-1", b'{"id":"tx-1"}', (("source", b"web"),))


def _numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


@given(st.lists(_records).map(_numbered))
def test_a_recording_gives_back_what_was_recorded(records: list[Record]) -> None:
    """Any bytes, null and empty ones too, come back; headers keep their order and repetitions."""
    data = encode_header(PARTITIONS) + b"".join(map(encode, records))
    header, decoded = begin(data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n")[:-1])
    assert header.partitions == PARTITIONS
    assert list(decoded) == records


@given(_records)
def test_a_record_is_one_line(record: Record) -> None:
    """No content can break the framing."""
    assert encode(record).count(b"\n") == 1


def test_fields_have_the_names_that_kcat_uses() -> None:
    """Tools made for kcat's output read a recording."""
    line = json.loads(encode(RECORD))
    assert line == {
        "topic": "examples",
        "partition": 0,
        "offset": 0,
        "ts": 1_700_000_000_000,
        "headers": [["source", "web"]],
        "key": "tx-1",
        "payload": '{"id":"tx-1"}',
    }


def test_bytes_that_are_not_utf8_are_marked_base64() -> None:
    """The mark is beside the field, so that text is never taken for base64."""
    line = json.loads(encode(RECORD._replace(key=b"\xff", value=b"\x00\xfe", headers=(("h", b"\xff"),))))
    assert (line["key"], line["key_encoding"]) == ("/w==", "base64")
    assert (line["payload"], line["payload_encoding"]) == ("AP4=", "base64")
    assert line["headers"] == [["h", "/w==", "base64"]]


def test_an_empty_file_is_no_recording() -> None:
    """There is always a header."""
    with pytest.raises(RecordingError, match="line 1: the file is empty"):
        begin([])


def test_labelled_data_is_not_taken_for_a_recording() -> None:
    """The error says what the first line must look like."""
    with pytest.raises(RecordingError, match=r'line 1: no recording header.*"mistakebound-recording": 1'):
        begin([b'{"id": "a", "features": {}, "label": true}\n'])


def test_an_unknown_format_is_refused_at_the_first_line() -> None:
    """A newer recording is not half-read."""
    with pytest.raises(RecordingError, match="format 2 is unknown"):
        begin([b'{"mistakebound-recording":2,"partitions":1}\n'])


def _without(field: str) -> Callable[[dict[str, object]], None]:
    return lambda line: line.__delitem__(field)


def _with(**fields: object) -> Callable[[dict[str, object]], None]:
    return lambda line: line.update(fields)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (_without("offset"), "missing required field `offset`"),
        (_with(offset="7"), r"\$.offset"),
        (_with(offset=-1), "offset = -1"),
        (_with(partition=PARTITIONS), "partition = 3, but the header says 3 partitions"),
        (_with(partition=True), r"\$.partition"),
        (_with(ts=1.5), r"\$.ts"),
        (_with(topic="other"), r"\$.topic"),
        (_with(extra=1), "unknown field `extra`"),
        (_with(payload="?", payload_encoding="base64"), "payload is not base64"),
        (_with(key=None, key_encoding="base64"), "key is null but marked base64"),
        (_with(payload_encoding="hex"), r"\$.payload_encoding"),
        (_with(headers=[["only"]]), r"headers\[0\]"),
        (_with(headers=[["h", "x", "hex"]]), r"headers\[0\]"),
    ],
)
def test_a_wrong_line_is_refused_by_number_and_field(
    damage: Callable[[dict[str, object]], None], complaint: str
) -> None:
    """Nothing is guessed: a replay of a damaged recording would prove nothing."""
    line = json.loads(encode(RECORD))
    damage(line)
    lines = [encode_header(PARTITIONS), encode(RECORD._replace(topic="labels")), json.dumps(line).encode()]
    with pytest.raises(RecordingError, match=f"line 3: .*{complaint}"):
        list(decode(lines))


def test_a_cut_line_is_refused() -> None:
    """The last line of an interrupted copy."""
    with pytest.raises(RecordingError, match="line 2: "):
        list(decode([encode_header(1), encode(RECORD)[:-20]]))


def test_offsets_that_go_back_within_a_partition_are_refused() -> None:
    """A file sorted by another tool would be another stream."""
    lines = [encode_header(1), encode(RECORD._replace(offset=5)), encode(RECORD._replace(offset=5))]
    with pytest.raises(RecordingError, match="offset = 5 of examples-0 comes after 5"):
        list(decode(lines))
