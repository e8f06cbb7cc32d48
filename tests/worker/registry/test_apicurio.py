"""A real registry (Apicurio's) and a real broker: records of Confluent's own serializers, in every format."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mistakebound.core.audit import Findings, audit
from mistakebound.core.records import TOPICS
from mistakebound.log.protocol import Log
from mistakebound.settings import MessageSettings, RegistrySettings
from mistakebound.worker.registry.client import Registry
from tests.core.support.audited import Lists
from tests.support.serializers import avro, json_schema, protobuf
from tests.worker.registry.support.shop import (
    CHARGEBACK,
    PAYMENT,
    chargeback,
    outgoing,
    payment,
    reasons,
    schemas_written,
    settings_of,
    values,
)
from tests.worker.support.working import Run, altered, opened

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Unused { string id = 1; }
message Payment { string id = 1; Features features = 2; google.protobuf.Timestamp at = 3; }
message Features { double amount = 1; Country country = 2; }
enum Country { DE = 0; XX = 1; }
message Chargeback { string id = 1; bool label = 2; }
"""
OBJECT = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Message",
    "type": "object",
    "required": ["id"],
}

Write = Callable[[str, str, Any], tuple[bytes, Any]]
WRITES: dict[str, tuple[Write, Write]] = {
    "avro": (
        lambda url, topic, message: avro(url, topic, PAYMENT, message),
        lambda url, topic, message: avro(url, topic, CHARGEBACK, message),
    ),
    "protobuf": (
        lambda url, topic, message: protobuf(url, topic, PROTO, "shop.Payment", message),
        lambda url, topic, message: protobuf(url, topic, PROTO, "shop.Chargeback", message),
    ),
    "json-schema": (
        lambda url, topic, message: json_schema(url, topic, OBJECT, message),
        lambda url, topic, message: json_schema(url, topic, OBJECT, message),
    ),
}


def audited(log: Log) -> Findings:
    records = {(topic, p): list(log.read(topic, p, 0)) for topic in TOPICS for p in range(log.partitions)}
    return audit(Lists(log.partitions, records), MessageSettings(), [], Findings())


@pytest.mark.parametrize("form", WRITES)
def test_records_of_a_real_registry_on_a_real_broker(
    form: str, kafka_bootstrap: str, apicurio_url: str, prefix: str
) -> None:
    """Each format comes to the same predictions; a second worker asks nobody; the audit finds every number again."""
    of_payment, of_chargeback = WRITES[form]
    settings = settings_of(
        apicurio_url,
        log={"url": f"kafka://{kafka_bootstrap}", "prefix": prefix},
        messages={"format": form},
        registry={"timeout": 30},
    )
    with opened(settings, 2) as log:
        for numbers in (range(4), range(4, 6)):
            for number in numbers:
                value, headers = of_payment(apicurio_url, f"{prefix}examples", payment(number))
                log.append([outgoing("examples", number, value, 2, headers)])
                value, headers = of_chargeback(apicurio_url, f"{prefix}labels", chargeback(number))
                log.append([outgoing("labels", number, value, 2, headers)])
            Run(log, settings)
            settings = altered(settings, registry={"url": "http://127.0.0.1:9", "timeout": 1})
        for p in range(2):
            assert reasons(log, p) == []
            found = values(log, "predictions", p)
            assert [one["features"] for one in found] == [payment(n)["features"] for n in range(p, 6, 2)]
            written = schemas_written(log, p)
            assert len(written) == len(set(written)) == len({*written}) > 0
        assert audited(log).first == []


def test_a_schema_is_what_the_registry_has_with_all_it_refers_to(apicurio_url: str, prefix: str) -> None:
    """References of references, each once; and what the registry does not have is not there."""
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

    def enum(name: str) -> str:
        return json.dumps({"type": "enum", "name": name, "namespace": "shop", "symbols": ["A"]})

    def holder(name: str, field: str) -> str:
        fields = [{"name": "f", "type": f"shop.{field}"}]
        return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})

    with SchemaRegistryClient({"url": apicurio_url}) as client:
        client.register_schema(f"{prefix}c", Schema(enum("C"), "AVRO"))
        client.register_schema(
            f"{prefix}b", Schema(holder("B", "C"), "AVRO", [SchemaReference("shop.C", f"{prefix}c", 1)])
        )
        schema_id = client.register_schema(
            f"{prefix}a", Schema(holder("A", "B"), "AVRO", [SchemaReference("shop.B", f"{prefix}b", 1)])
        )
    registry = Registry(RegistrySettings(url=apicurio_url))
    registry.probe()
    found = registry.schema(str(schema_id))
    assert found is not None
    assert [one.name for one in found.references] == ["shop.C", "shop.B"]
    assert json.loads(found.text)["name"] == "A"
    assert registry.schema("99999999") is None
