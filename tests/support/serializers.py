"""Records as confluent-kafka's own serializers write them, schemas registered at a registry's URL."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from mistakebound.worker.registry.protoc import compiled

Headers = list[tuple[str, bytes]]


@contextmanager
def client_of(registry: str | SchemaRegistryClient) -> Iterator[SchemaRegistryClient]:
    """One for this URL; or the one given, which stays open: to make one takes longer than to write many messages."""
    if isinstance(registry, SchemaRegistryClient):
        yield registry
    else:
        with SchemaRegistryClient({"url": registry}) as client:
            yield client


def avro(
    registry: str | SchemaRegistryClient, topic: str, schema: Any, message: Any, *, in_header: bool = False
) -> tuple[bytes, Headers]:
    """(value, headers)."""
    with client_of(registry) as client:
        return _written(AvroSerializer(client, json.dumps(schema), conf=_conf(in_header)), topic, message)


def json_schema(
    url: str, topic: str, schema: Any, message: Any, *, in_header: bool = False
) -> tuple[bytes, Headers]:
    """(value, headers)."""
    with client_of(url) as client:
        return _written(JSONSerializer(json.dumps(schema), client, conf=_conf(in_header)), topic, message)


def protobuf(
    url: str, topic: str, text: str, name: str, message: Any, *, in_header: bool = False
) -> tuple[bytes, Headers]:
    """(value, headers). `message`: as Protobuf's JSON mapping has it; `name`: of its type."""
    with client_of(url) as client:
        kind = message_type(text, name)
        serializer = ProtobufSerializer(kind, client, _conf(in_header))
        return _written(serializer, topic, json_format.ParseDict(message, kind()))


def message_type(text: str, name: str) -> Any:
    """The class of a message in a .proto file's text."""
    descriptors, wrong = compiled(text, ())
    assert descriptors is not None, wrong
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(descriptors)).file:
        pool.Add(file)  # type: ignore[no-untyped-call]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _conf(in_header: bool) -> dict[str, Any]:
    return {"schema.id.serializer": header_schema_id_serializer} if in_header else {}


def _written(serializer: Any, topic: str, message: Any) -> tuple[bytes, Headers]:
    headers: Headers = []
    value = serializer(message, SerializationContext(topic, MessageField.VALUE, headers))
    assert isinstance(value, bytes)
    return value, headers
