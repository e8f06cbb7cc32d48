"""librdkafka as the log's `Client`; its options, by kafka-python's names, from `[kafka]`.

Guarantees: those of `mistakebound.log.kafka.kafka_python.make_clients`. An option for which librdkafka has no
counterpart is refused by name, never ignored.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from mistakebound.log.kafka import aws_iam, oauth_options, timeouts
from mistakebound.log.kafka.confluent.errors import Errors
from mistakebound.log.kafka.confluent.fetch import ConfluentFetcher
from mistakebound.log.kafka.confluent.second_reading import SecondReading
from mistakebound.log.kafka.confluent.send import ConfluentSender, Connections
from mistakebound.log.kafka.confluent.session import ConfluentSession
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.oauth import TokenRefused, TokenSource, TokenUnavailable
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Misconfigured

_log = structlog.get_logger(__name__)

AGE, REFRESH = "metadata.max.age.ms", "topic.metadata.refresh.interval.ms"
"""For how long librdkafka believes what it heard of topics, and how often it asks; kafka-python has one option for both."""
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
    "metadata_max_age_ms": AGE,
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
OTHERS_ALONE = ("bootstrap_timeout_ms", "max_poll_records", "max_block_ms", "buffer_memory")
"""Options that only kafka-python's clients read, which still administer the cluster."""

SILENT: Mapping[str, Any] = {"log_level": 0, "log.queue": True}
"""Errors that matter are raised by calls. Left alone the library would also write to stderr, past our logs; so its
log goes to a queue that nobody reads. A Python logger would be called from within whatever call is under way, and
confluent-kafka 2.16 has failed there because it found no `log` attribute."""
CONNECTIONS: Mapping[str, Any] = {"log_level": 6, "log.connection.close": True}
"""What a producer's log must hold for `Connections` to see every connection that ends."""


def translated_options(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`[kafka]` as librdkafka spells it: for a consumer and for a producer. Raises Misconfigured."""
    known = {
        *BOTH,
        *CONSUMING,
        *PRODUCING,
        *OTHERS_ALONE,
        *oauth_options.OPTIONS,
        aws_iam.REGION,
        "ssl_check_hostname",
    }
    unknown = ", ".join(f"kafka.{name}" for name in given if name not in known)
    if unknown:
        raise Misconfigured(
            f"{unknown}: librdkafka has no such option; remove it, or write log.url as kafka://..."
        )
    values = {name: "none" if value is None else value for name, value in given.items()}
    hostname = (
        {"ssl.endpoint.identification.algorithm": "none"} if not given.get("ssl_check_hostname", True) else {}
    )

    def spelled(names: Mapping[str, str]) -> dict[str, Any]:
        found = {theirs: values[ours] for ours, theirs in names.items() if ours in values} | hostname
        return found | ({REFRESH: found[AGE]} if AGE in found else {})

    return {"consumer": spelled({**BOTH, **CONSUMING}), "producer": spelled({**BOTH, **PRODUCING})}


class ConfluentClient:
    """Makes what the log is made of, each with connections of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._everywhere: dict[str, Any] = {
            "bootstrap.servers": ",".join(cluster.connection.servers),
            AGE: 30_000,
            REFRESH: 30_000,
            "reconnect.backoff.max.ms": cluster.connection.reconnect_max_ms,
            **SILENT,
        }
        if cluster.connection.tokens is not None:
            self._everywhere["oauth_cb"] = partial(_token, cluster.connection.tokens)
        self._given = translated_options(cluster.connection.given)

    def fetcher(self, *, follows: bool) -> ConfluentFetcher:
        """A consumer that never joins the group; librdkafka asks for a group's name all the same."""
        again = SecondReading(self._cluster)
        # At the end of a read a fetch is still waiting at the broker, and the next read begins only once it is answered.
        ours = {} if follows else {"fetch.wait.max.ms": 10}
        return ConfluentFetcher(self._consumer(ours, _ignore), self._cluster.names, again)

    def sender(self, transactional_id: str) -> ConfluentSender:
        """A producer with a stable id, not yet initialised."""
        ours = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeouts.TRANSACTION_MS,
            "enable.idempotence": True,
            "acks": "all",
            "request.timeout.ms": timeouts.REQUEST_MS,
            "delivery.timeout.ms": timeouts.DELIVERY_MS,
            "batch.size": 262_144,
            "linger.ms": 2,
            "retry.backoff.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "message.max.bytes": self._cluster.connection.max_request_bytes,
        }
        options = {**self._everywhere, **ours, **self._given["producer"], **CONNECTIONS}
        make = partial(_made, Producer, options)
        return ConfluentSender(make, self._cluster.names, transactional_id)

    def session(self, partitions: int, slot: str, writer: Writer) -> ConfluentSession:
        """Join the group as `slot`. From now on the interpreter is guarded: only a worker has nobody who looks on."""
        self._cluster.watchdog.guard_interpreter()
        ours = {
            "client.id": self._cluster.connection.client_id(slot),
            "partition.assignment.strategy": "range",
            "session.timeout.ms": timeouts.SESSION_MS,
        }
        refresh_ms = {**self._everywhere, **self._given["consumer"]}[REFRESH]
        make = partial(self._consumer, ours)
        return ConfluentSession(make, self._cluster, partitions, writer, look_every_s=refresh_ms / 1_000)

    def _consumer(self, more: Mapping[str, Any], errors: Errors) -> Consumer:
        ours = {
            "group.id": self._cluster.connection.group,
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
        options = {**self._everywhere, **ours, **more, **self._given["consumer"]}
        consumer: Consumer = _made(Consumer, options, errors)
        return consumer


def _token(source: TokenSource, _: str) -> tuple[str, float, str, dict[str, str]]:
    """As librdkafka asks for it. What this raises reaches the listener for errors as `_AUTHENTICATION`, without its text."""
    try:
        token = source.token()
    except (TokenUnavailable, TokenRefused) as error:
        _log.warning("token_unavailable", error=str(error))
        raise
    return token.text, token.expires_s, token.subject, dict(source.extensions)


def _made(
    client: Callable[..., Any], options: Mapping[str, Any], errors: Errors, log: Connections | None = None
) -> Any:
    listeners = {"error_cb": errors} if log is None else {"error_cb": errors, "logger": log}
    try:
        return client({**options, **listeners})
    except (KafkaException, ValueError, TypeError) as error:
        raise Misconfigured(f"librdkafka does not take the options under [kafka]: {error}") from error


def _ignore(error: KafkaError) -> None:
    """What ends a read comes with its messages; the client recovers from the rest by itself."""
