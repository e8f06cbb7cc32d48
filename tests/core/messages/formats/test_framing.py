"""Which schema a record names, in its value or in a header."""

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.formats.framing import FIRST, HEADER, Framed, schema_id_of, unframe
from mistakebound.core.records import Headers, Record

GUID = UUID(int=0x1234)


def record(value: bytes | None, headers: Headers = ()) -> Record:
    return Record("examples", 0, 0, 0, None, value, headers)


def framed(value: bytes, headers: Headers = (), *, protobuf: bool = False) -> Framed:
    return unframe(record(value, headers), value, protobuf=protobuf)


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**32 - 1])
def test_the_id_in_the_value_is_its_decimal_text(number: int) -> None:
    """Whatever its four bytes say; no id is special."""
    value = b"\0" + struct.pack(">I", number) + b"body"
    assert framed(value) == Framed(str(number), b"body")
    assert schema_id_of(record(value)) == str(number)


@pytest.mark.parametrize(
    ("header", "schema"), [(b"\1" + GUID.bytes, str(GUID)), (b"\0" + struct.pack(">I", 7), "7")]
)
def test_the_id_in_a_header_leaves_the_value_whole(header: bytes, schema: str) -> None:
    """Even where the value begins with a zero byte of its own."""
    assert framed(b"\0\0\0\0\1", ((HEADER, header),)) == Framed(schema, b"\0\0\0\0\1")


@pytest.mark.parametrize(
    ("place", "indexes"),
    [
        (b"\0", FIRST),
        (b"\x02\x00", (0,)),
        (b"\x02\x04", (2,)),
        (b"\x04\x00\x02", (0, 1)),
        (b"\x02\xc8\x01", (100,)),
    ],
)
def test_a_protobuf_message_has_a_place_in_its_file(place: bytes, indexes: tuple[int, ...]) -> None:
    """Zigzag varints with their number before them; a zero alone is the first message."""
    assert framed(b"\0\0\0\0\1" + place + b"body", protobuf=True) == Framed("1", b"body", indexes)
    header = ((HEADER, b"\1" + GUID.bytes + place),)
    assert framed(b"body", header, protobuf=True) == Framed(str(GUID), b"body", indexes)


@pytest.mark.parametrize("place", [b"", b"\x02", b"\x01", b"\x02\x01", b"\xff" * 9, b"\xff\xff\xff\xff\x0f"])
def test_a_place_that_cannot_be_read_is_no_place(place: bytes) -> None:
    with pytest.raises(BadRecord) as caught:
        framed(b"\0\0\0\0\1" + place, protobuf=True)
    assert caught.value.reason == "schema-mismatch"


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b"", ()),
        (b"\0\0\0\0", ()),
        (b'{"id":"a"}', ()),
        (b"\1\0\0\0\1x", ()),
        (b"\0\0\0\0\1", ((HEADER, b"\2" + GUID.bytes),)),
        (b"\0\0\0\0\1", ((HEADER, b""),)),
    ],
)
def test_a_record_that_names_no_schema_is_not_framed(value: bytes, headers: Headers) -> None:
    """JSON among framed records, for example."""
    with pytest.raises(BadRecord) as caught:
        framed(value, headers)
    assert caught.value.reason == "not-framed"
    assert schema_id_of(record(value, headers)) is None


@given(st.binary(max_size=40), st.booleans(), st.one_of(st.none(), st.binary(max_size=30)))
def test_what_is_fetched_beforehand_is_what_a_record_names(
    value: bytes, protobuf: bool, header: bytes | None
) -> None:
    """For all bytes: the two readings of a frame agree."""
    headers = () if header is None else ((HEADER, header),)
    try:
        found = framed(value, headers, protobuf=protobuf)
    except BadRecord:
        return
    assert found.schema == schema_id_of(record(value, headers))
