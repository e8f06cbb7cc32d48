"""Somebody else's producer: transactions that are committed, aborted or left open, and records as no client of ours
writes them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer

from mistakebound.core.records import Outgoing
from mistakebound.log.kafka.kafka_python import append


class Raw(str):
    """A header's name with these bytes, as a client in another language may write it."""

    _bytes: bytes

    def __new__(cls, content: bytes) -> "Raw":
        name = super().__new__(cls, content.decode(errors="replace"))
        name._bytes = content
        return name

    def encode(self, *_: str) -> bytes:
        return self._bytes


class Upstream:
    """One producer; transactional where it has an id. `codec` as Kafka names it."""

    def __init__(
        self, bootstrap: str, prefix: str, transactional_id: str | None = None, codec: str | None = None
    ) -> None:
        self._prefix = prefix
        more: dict[str, Any] = {} if codec is None else {"compression_type": codec}
        if transactional_id is not None:
            more |= {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, **more)
        if transactional_id is not None:
            self._producer.init_transactions()

    def send(self, records: Iterable[Outgoing]) -> None:
        """Outside a transaction, or within the open one. Raises what the broker says of any of them."""
        futures = [append._send(self._producer, self._prefix + each.topic, each) for each in records]
        self._producer.flush(30)
        for future in futures:
            future.get(0)

    def commit(self, records: Iterable[Outgoing]) -> None:
        """In a transaction of their own."""
        self._producer.begin_transaction()
        self.send(records)
        self._producer.commit_transaction()

    def abort(self, records: Iterable[Outgoing]) -> None:
        """They are on the broker, and nobody who reads committed records sees them."""
        self._producer.begin_transaction()
        self.send(records)
        self._producer.abort_transaction()

    @contextmanager
    def leave_open(self, records: Iterable[Outgoing]) -> Iterator[None]:
        """A transaction that is open as long as the block, and committed then."""
        self._producer.begin_transaction()
        self.send(records)
        yield
        self._producer.commit_transaction()

    def close(self) -> None:
        self._producer.close(timeout=5)

    def __enter__(self) -> "Upstream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
