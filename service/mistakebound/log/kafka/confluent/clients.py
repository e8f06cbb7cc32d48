"""From settings to librdkafka's clients: `[kafka]` keeps the names of kafka-python's options.

Guarantees: the same as of `mistakebound.log.kafka.connect`. An option that librdkafka has no counterpart for
is refused by name, never ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from mistakebound.log.kafka.connect import DELIVERY_MS, REQUEST_MS, TRANSACTION_MS, Connection
from mistakebound.log.protocol import Misconfigured

BOTH: Mapping[str, str] = {
    "security_protocol": "security.protocol",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_password": "ssl.key.password",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "sasl_kerberos_service_name": "sasl.kerberos.service.name",
    "metadata_max_age_ms": "metadata.max.age.ms",
    "connections_max_idle_ms": "connections.max.idle.ms",
    "reconnect_backoff_ms": "reconnect.backoff.ms",
    "reconnect_backoff_max_ms": "reconnect.backoff.max.ms",
    "receive_buffer_bytes": "socket.receive.buffer.bytes",
    "send_buffer_bytes": "socket.send.buffer.bytes",
}
CONSUMING: Mapping[str, str] = {
    "client_rack": "client.rack",
    "fetch_min_bytes": "fetch.min.bytes",
    "fetch_max_bytes": "fetch.max.bytes",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "max_partition_fetch_bytes": "max.partition.fetch.bytes",
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "max_poll_interval_ms": "max.poll.interval.ms",
}
PRODUCING: Mapping[str, str] = {
    "batch_size": "batch.size",
    "compression_type": "compression.type",
    "linger_ms": "linger.ms",
    "max_request_size": "message.max.bytes",
    "retry_backoff_ms": "retry.backoff.ms",
}
OURS_ALONE = ("bootstrap_timeout_ms", "max_poll_records", "max_block_ms", "buffer_memory")
"""Options of the kafka-python clients that remain beside; nothing here reads them."""

SILENT: Mapping[str, Any] = {"log_level": 0, "log.queue": True}
"""What matters comes as an error of a call; by itself the library would also write to stderr, past our logs. Even
of fatal errors it tells nothing here: they wait in a queue that nobody asks. A logger of Python's would be called
from within whatever call is under way, and confluent-kafka 2.16 has failed there for want of its `log`."""

Errors = Callable[[KafkaError], None]


def translated_options(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`[kafka]` as librdkafka spells it: for a consumer and for a producer. Raises Misconfigured."""
    unknown = [name for name in given if name not in {*BOTH, *CONSUMING, *PRODUCING, *OURS_ALONE, _HOSTNAME}]
    if unknown:
        listed = ", ".join(f"kafka.{name}" for name in unknown)
        raise Misconfigured(
            f"{listed}: librdkafka has no such option; remove it, or write log.url as kafka://..."
        )
    both = {BOTH[name]: _spelled(value) for name, value in given.items() if name in BOTH}
    if not given.get(_HOSTNAME, True):
        both["ssl.endpoint.identification.algorithm"] = "none"
    consuming = {CONSUMING[name]: _spelled(given[name]) for name in given if name in CONSUMING}
    producing = {PRODUCING[name]: _spelled(given[name]) for name in given if name in PRODUCING}
    return {"consumer": {**both, **consuming}, "producer": {**both, **producing}}


_HOSTNAME = "ssl_check_hostname"


def _spelled(value: Any) -> Any:
    return "none" if value is None else value


class Clients:
    """Makes librdkafka's clients of one cluster. Holds no connection itself."""

    def __init__(self, connection: Connection) -> None:
        self.group = connection.group
        self._client_id = connection.client_id
        self._everywhere = {
            "bootstrap.servers": ",".join(connection.servers),
            "metadata.max.age.ms": 30_000,
            "topic.metadata.refresh.interval.ms": 30_000,
            **SILENT,
        }
        self._given = translated_options(connection.given)
        self._max_request_bytes = connection.max_request_bytes

    def member(self, slot: str, errors: Errors) -> Consumer:
        """A consumer of the group, not yet subscribed."""
        ours = {
            "client.id": self._client_id(slot),
            "partition.assignment.strategy": "range",
            "session.timeout.ms": 10_000,
        }
        return self._consumer(ours, errors)

    def reader(self, errors: Errors) -> Consumer:
        """A consumer that never joins the group, for reads by offset; librdkafka asks for a group's name."""
        return self._consumer({}, errors)

    def transactional(self, transactional_id: str, errors: Errors) -> Producer:
        """A producer with stable id, not yet initialised."""
        ours = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_MS,
            "enable.idempotence": True,
            "acks": "all",
            "request.timeout.ms": REQUEST_MS,
            "delivery.timeout.ms": DELIVERY_MS,
            "batch.size": 262_144,
            "linger.ms": 2,
            "retry.backoff.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "message.max.bytes": self._max_request_bytes,
        }
        options = {**self._everywhere, **ours, **self._given["producer"], "error_cb": errors}
        producer: Producer = _made(Producer, options)
        return producer

    def _consumer(self, more: Mapping[str, Any], errors: Errors) -> Consumer:
        ours = {
            "group.id": self.group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            # What is fetched ahead is memory outside the limits on buffered records: keep it small.
            "queued.max.messages.kbytes": 32_768,
        }
        options = {**self._everywhere, **ours, **more, **self._given["consumer"], "error_cb": errors}
        consumer: Consumer = _made(Consumer, options)
        return consumer


def _made(client: Callable[[dict[str, Any]], Any], options: dict[str, Any]) -> Any:
    try:
        return client(options)
    except (KafkaException, ValueError, TypeError) as error:
        raise Misconfigured(f"librdkafka does not take the options under [kafka]: {error}") from error
