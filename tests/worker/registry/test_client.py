"""What a registry may answer, and what becomes of it: a schema, none, a wait, or words that name the setting."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from mistakebound.core.messages.formats.decoding import Decoding
from mistakebound.core.records import Record
from mistakebound.settings import RegistrySettings
from mistakebound.worker.registry.client import Registry, RegistryAway, RegistryRefused
from tests.support.registry import StandIn, stand_in
from tests.support.serializers import message_type, protobuf

STRING = {"schema": '"string"'}


@pytest.fixture
def stub() -> Iterator[StandIn]:
    with stand_in() as one:
        yield one


def registry(stub: StandIn, **more: Any) -> Registry:
    return Registry(RegistrySettings(url=stub.url, **more))


def test_a_schema_comes_by_its_id_or_by_its_guid(stub: StandIn) -> None:
    """An id of zero is asked for like any other; a registry without it says so."""
    number = stub.register("a-value", STRING)
    for name in (str(number), stub.guid(number)):
        found = registry(stub).schema(name)
        assert found is not None
        assert (found.type, found.text) == ("AVRO", '"string"')
    assert registry(stub).schema("0") is None
    assert registry(stub).schema(stub.guid(7)) is None


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_an_error_of_the_registry_is_waited_for(stub: StandIn, status: int) -> None:
    """It was asked once: who waits does so in its own way."""
    stub.status = status
    with pytest.raises(RegistryAway, match=str(status)):
        registry(stub).schema("1")
    assert len(stub.asked) == 1


def test_a_registry_that_is_not_there_is_waited_for() -> None:
    with pytest.raises(RegistryAway, match="no answer"):
        Registry(RegistrySettings(url="http://127.0.0.1:9")).schema("1")


def test_a_password_is_read_again_for_each_schema(stub: StandIn, tmp_path: Path) -> None:
    """And a wrong one is told with the settings to correct, without being shown."""
    stub.register("a-value", STRING)
    stub.login = "me:right"
    file = tmp_path / "password"
    file.write_text("wrong-secret\n")
    one = registry(stub, username="me", password_file=str(file))
    with pytest.raises(RegistryRefused, match=r"401.*registry\.username") as caught:
        one.schema("1")
    assert "wrong-secret" not in str(caught.value)
    file.write_text("right\n")
    assert one.schema("1") is not None
    with pytest.raises(RegistryRefused, match=r"registry\.password_file = .* cannot be read"):
        registry(stub, username="me", password_file=str(tmp_path / "missing")).schema("1")


def test_a_token_is_sent_as_a_bearer(stub: StandIn, tmp_path: Path) -> None:
    stub.register("a-value", STRING)
    stub.token = "t0ken"
    file = tmp_path / "token"
    file.write_text("t0ken\n")
    assert registry(stub, token_file=str(file)).schema("1") is not None
    with pytest.raises(RegistryRefused, match="401"):
        registry(stub).schema("1")


def test_a_certificate_that_nobody_vouches_for_names_the_setting(tmp_path: Path) -> None:
    """With the authority named, it passes."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with stand_in(context) as stub:
        stub.register("a-value", STRING)
        with pytest.raises(RegistryRefused, match=r"does not pass.*registry\.ca"):
            registry(stub).schema("1")
        assert registry(stub, ca=str(tmp_path / "ca.pem")).schema("1") is not None
        with pytest.raises(RegistryRefused, match=r"\[registry\] cannot be used"):
            registry(stub, ca=str(tmp_path / "missing.pem")).schema("1")


def test_what_a_protobuf_schema_imports_comes_with_it(stub: StandIn) -> None:
    """As text or, as Confluent's serializer registers it, as a descriptor; well-known files come with protoc."""
    common = 'syntax = "proto3"; package c; message Money { double amount = 1; }'
    text = 'syntax = "proto3"; package p; import "c/money.proto"; message P { string id = 1; c.Money features = 2; }'
    stub.register("money", {"schemaType": "PROTOBUF", "schema": common})
    reference = {"name": "c/money.proto", "subject": "money", "version": 1}
    number = stub.register("p-value", {"schemaType": "PROTOBUF", "schema": text, "references": [reference]})
    found = registry(stub).schema(str(number))
    assert found is not None
    assert found.wrong is None
    body = b"\0" + number.to_bytes(4) + b"\0\x0a\x01a\x12\x09\x09" + b"\0\0\0\0\0\0\x04\x40"
    record = Record("examples", 0, 0, 0, None, body)
    assert Decoding("protobuf").decode(record, {str(number): found}.get) == {
        "id": "a",
        "features": {"amount": 2.5},
    }


def test_a_descriptor_that_confluents_serializer_registered_is_compiled(stub: StandIn) -> None:
    """Its text is base64; what it imports is well known."""
    text = (
        'syntax = "proto3"; package p; import "google/protobuf/timestamp.proto"; '
        "message O { string id = 1; } message P { string id = 1; google.protobuf.Timestamp at = 2; }"
    )
    assert message_type(text, "p.P") is not None
    value, _ = protobuf(stub.url, "t", text, "p.P", {"id": "a", "at": "1970-01-01T00:00:01.5Z"})
    number = int.from_bytes(value[1:5])
    found = registry(stub).schema(str(number))
    assert found is not None
    assert found.wrong is None, found.wrong
    record = Record("examples", 0, 0, 0, None, value)
    assert Decoding("protobuf").decode(record, {str(number): found}.get) == {"id": "a", "at": 1.5}


def test_references_in_a_circle_end(stub: StandIn) -> None:
    """No registry keeps such; who asks must not hang on one."""
    circle = [{"name": "a", "subject": "a", "version": 1}]
    number = stub.register("a", {"schema": json.dumps({"type": "string"}), "references": circle})
    found = registry(stub).schema(str(number))
    assert found is not None
    assert [one.name for one in found.references] == ["a"]
