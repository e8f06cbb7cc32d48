"""How a record is handed to a producing client, and how such a client is thrown away."""

from typing import Any

from kafka.errors import KafkaError
from kafka.serializer import Serializer

from service.core.records import Outgoing

CLOSE_S = 2.0
NOTHING = object()


class Verbatim(Serializer):  # type: ignore[misc]
    """Bytes as they are; `NOTHING` as a null, which the client accepts in no other way beside a null key."""

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:  # noqa: ARG002
        return None if data is NOTHING else data


def send(producer: Any, name: str, record: Outgoing) -> Any:
    """Hand one record over for the broker's topic `name`; returns its future.

    A null header value is written as an empty one: the client takes no other.
    """
    return producer.send(
        name,
        value=NOTHING if record.value is None else record.value,
        key=record.key,
        headers=[(header, value if value is not None else b"") for header, value in record.headers],
        partition=record.partition if record.partition >= 0 else None,
        timestamp_ms=record.timestamp_ms,
    )


def discard(producer: Any) -> None:
    """Close a client whatever its state, within a few seconds; its unsent records are dropped."""
    producer._sender.force_close()
    producer._sender.join(CLOSE_S)
    try:
        producer.close(timeout=0)
    except KafkaError:
        # What was unsent cannot be flushed any more, and the client's clean-up at exit would try again.
        producer._unregister_cleanup()
        producer._closed = True
