"""Payments and chargebacks in Avro, as a producer with Confluent's serializer writes them, and the same in JSON."""

import json
import time
from functools import partial
from typing import Any

from mistakebound.core.records import Outgoing, Topic
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.support.serializers import avro, client_of
from tests.worker.support.working import settings_for

BEGAN_MS = int(time.time() * 1000)
"""A broker deletes what is too old."""

PAYMENT: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "features",
            "type": {
                "type": "record",
                "name": "Features",
                "fields": [
                    {"name": "amount", "type": "double"},
                    {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["DE", "XX"]}},
                ],
            },
        },
    ],
}
CHARGEBACK: dict[str, Any] = {
    "type": "record",
    "name": "Chargeback",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "string"}, {"name": "label", "type": "boolean"}],
}


def settings_of(url: str, **sections: Any) -> Settings:
    """Avro in a registry's framing."""
    messages = {"format": "avro", **sections.pop("messages", {})}
    registry = {"url": url, "timeout": 2, **sections.pop("registry", {})}
    return settings_for(**{"messages": messages, "registry": registry, **sections})


def payment(number: int) -> dict[str, Any]:
    """Those from XX are charged back."""
    return {
        "id": f"i{number}",
        "features": {"amount": 1.0 + number % 7, "country": "XX" if number % 3 else "DE"},
    }


def chargeback(number: int) -> dict[str, Any]:
    return {"id": f"i{number}", "label": bool(number % 3)}


def outgoing(
    topic: Topic, number: int, value: bytes | None, partitions: int = 1, headers: Any = ()
) -> Outgoing:
    now = BEGAN_MS + number * 2 + (topic == "labels")
    return Outgoing(topic, number % partitions, f"i{number}".encode(), value, tuple(headers), now)


def send(
    log: Log, url: str, numbers: range, *, schema: dict[str, Any] = PAYMENT, in_header: bool = False
) -> None:
    """Payments, and each one's chargeback right behind it, in Avro."""
    with client_of(url) as client:
        written = partial(avro, client, in_header=in_header)
        for number in numbers:
            value, headers = written("examples", schema, payment(number))
            log.append([outgoing("examples", number, value, log.partitions, headers)])
            value, headers = written("labels", CHARGEBACK, chargeback(number))
            log.append([outgoing("labels", number, value, log.partitions, headers)])


def send_json(log: Log, numbers: range) -> None:
    """The same in JSON."""
    for number in numbers:
        for topic, message in (("examples", payment(number)), ("labels", chargeback(number))):
            log.append([outgoing(topic, number, json.dumps(message).encode(), log.partitions)])  # type: ignore[arg-type]


def values(log: Log, topic: Topic, partition: int = 0) -> list[Any]:
    """JSON values of a topic partition."""
    return [json.loads(record.value or b"null") for record in log.read(topic, partition, 0)]


def schemas_written(log: Log, partition: int = 0) -> list[str]:
    """The ids of schemas in the order in which `outcomes` have them."""
    return [name for one in values(log, "outcomes", partition) for name in one.get("schemas", {})]


def reasons(log: Log, partition: int = 0) -> list[str]:
    """Of the dead letters."""
    found = []
    for record in log.read("dead-letters", partition, 0):
        found += [(value or b"").decode() for name, value in record.headers if name == "mistakebound.reason"]
    return found
