"""From settings to clients: which options each gets, and what it means when one cannot be made.

Guarantees:

1. Every consumer reads committed records only, commits nothing by itself and never jumps to an end.
2. All options that the user may give (`user_options.py`: TLS, SASL, buffers ...) reach every client that
   knows them.
3. A wrong address or a silent broker is an `Unreachable` that names it, within `bootstrap_timeout_ms`; a
   broker that refuses us is an `Unreachable` that says why, at once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import kafka.errors as kafka_errors
import kafka.record.util
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as BrokerPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor

from mistakebound.core.records import Topic
from mistakebound.log.kafka import aws_iam, oauth, timeouts
from mistakebound.log.kafka.kafka_python.auth_errors import AuthRefused, noting_client
from mistakebound.log.kafka.kafka_python.codecs import unreadable
from mistakebound.log.kafka.kafka_python.token_provider import TokenProvider
from mistakebound.log.kafka.kafka_python.user_options import checked
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.oauth import TokenSource
from mistakebound.log.kafka.oauth_options import MECHANISM as OAUTHBEARER
from mistakebound.log.protocol import Misconfigured, Unreachable
from mistakebound.settings import Settings

SCHEMES = ("kafka", "kafka+confluent")
"""The second is the same brokers by way of librdkafka."""

Client = Callable[..., Any]


def broker_partition(names: Names, topic: Topic, partition: int) -> BrokerPartition:
    """The broker's name of one partition, as kafka-python takes it."""
    return BrokerPartition(names.to_broker[topic], partition)


class Connection:
    """Makes clients of one cluster. Holds no connection itself."""

    def __init__(self, settings: Settings) -> None:
        """Raise Misconfigured for options that cannot be used, and where a library is missing."""
        if kafka.record.util.crc32c_c is None:
            raise Misconfigured(
                "the native code of crc32c is missing, without it Kafka is read twenty times slower; "
                "install `kafka-python[crc32c]` for this Python"
            )
        if missing := unreadable():
            raise Misconfigured(
                f"records compressed with {' or '.join(missing)} could not be read, and any producer may send "
                f"them: a library is missing; install `kafka-python[{','.join(missing)}]` for this Python"
            )
        self.servers = servers_of(settings.log.url)
        self.group = settings.group
        self.given = checked(settings.kafka)
        self.tokens = _tokens(self.given)
        """Shared by all clients; None for mechanisms without."""
        if self.tokens is not None:
            self.given["sasl_mechanism"] = OAUTHBEARER

    def admin(self, **ours: Any) -> Any:
        """A client for topics, offsets and groups."""
        return self._make(KafkaAdminClient, ours)

    def reader(self) -> Any:
        """A consumer outside any group, for reads by offset."""
        return self._make(KafkaConsumer, {**_COMMITTED, "group_id": None, "fetch_max_wait_ms": 50})

    def member(self, slot: str) -> Any:
        """A consumer of the group, not yet subscribed."""
        ours = {
            **_COMMITTED,
            "group_id": self.group,
            "client_id": self.client_id(slot),
            "partition_assignment_strategy": (RangePartitionAssignor,),
            "max_poll_records": 4_000,
            "session_timeout_ms": timeouts.SESSION_MS,
            "heartbeat_interval_ms": 1_000,  # how soon a member hears that others come and go
            "fetch_max_wait_ms": 100,
        }
        return self._make(KafkaConsumer, ours)

    def observer(self) -> Any:
        """A consumer that knows the group's positions and never joins it."""
        return self._make(KafkaConsumer, {**_COMMITTED, "group_id": self.group})

    def transactional(self, transactional_id: str) -> Any:
        """A producer with stable id, not yet initialised."""
        ours = {
            **_writing(),
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeouts.TRANSACTION_MS,
            # The broker still writes the last transaction's markers when the next one begins; the
            # client then waits one whole backoff: 100 ms by default.
            "retry_backoff_ms": 5,
        }
        return self._make(KafkaProducer, ours)

    def plain(self) -> Any:
        """A producer outside transactions; retries do not repeat records."""
        return self._make(KafkaProducer, {**_writing(), "linger_ms": 5})

    def client_id(self, slot: str) -> str:
        """How a slot's consumer calls itself; a successor knows its predecessor by it."""
        return f"{self.group}-{slot}"

    @property
    def max_request_bytes(self) -> int:
        """Largest request that producers send."""
        return int(self.given.get("max_request_size", KafkaProducer.DEFAULT_CONFIG["max_request_size"]))

    @property
    def longest_join_s(self) -> float:
        """For how long a group waits for a member that works and does not poll; all of its members have the same settings."""
        interval_ms = self.given.get(
            "max_poll_interval_ms", KafkaConsumer.DEFAULT_CONFIG["max_poll_interval_ms"]
        )
        return int(interval_ms) / 1_000

    @property
    def reconnect_max_ms(self) -> int:
        """The longest wait before a broker that was away is asked again, where the user gives none: no shorter than the
        first, if the user gives that.

        By default kafka-python and librdkafka come to ask every half minute or every ten seconds; Java's client, every second.
        """
        return max(1_000, int(self.given.get("reconnect_backoff_ms", 0)))

    def options(self, client: Client, ours: Mapping[str, Any]) -> dict[str, Any]:
        """All options of `client`: our defaults, then the user's options, then what is guarded."""
        known: Mapping[str, Any] = client.DEFAULT_CONFIG  # type: ignore[attr-defined]
        given = {name: value for name, value in self.given.items() if name in known}
        everywhere: dict[str, Any] = {"bootstrap_servers": self.servers, "bootstrap_timeout_ms": 10_000}
        if self.tokens is not None:
            everywhere["sasl_oauth_token_provider"] = TokenProvider(self.tokens)
        waits = {"metadata_max_age_ms": 30_000, "reconnect_backoff_max_ms": self.reconnect_max_ms}
        return {**everywhere, **waits, **ours, **given}

    def _make(self, client: Client, ours: Mapping[str, Any]) -> Any:
        options = self.options(client, ours)
        # A client that fails while it is made leaves its sockets and its thread behind, and we try again and again
        # while a broker is away.
        started: list[Any] = []

        def start(**configs: Any) -> Any:
            started.append(noting_client(**configs))
            return started[-1]

        try:
            return client(**options, kafka_client=start)
        except BaseException as error:
            for each in started:
                each.close()
            if isinstance(error, _TELLING):
                raise self._not_made(error, [each._manager.last for each in started], options) from error
            raise

    def _not_made(self, error: Exception, lasts: list[str], options: Mapping[str, Any]) -> Exception:
        servers = ",".join(self.servers)
        match error:
            case AuthRefused():
                return Unreachable(f"cannot connect to Kafka at {servers}: {error.args[0]}")
            case kafka_errors.KafkaTimeoutError():
                seconds = options["bootstrap_timeout_ms"] / 1000
                last = next((f"; at last: {each}" for each in lasts if each), "")
                protocol = options.get("security_protocol", "PLAINTEXT")
                return Unreachable(
                    f"no Kafka broker answers at {servers} within {seconds:g} s{last}; correct `log.url`, or "
                    f"kafka.security_protocol, which is {protocol}, if the broker's listener has another"
                )
            case kafka_errors.KafkaConfigurationError() | ValueError() | TypeError() | AssertionError():
                return Misconfigured(f"kafka-python does not take the options under [kafka]: {error}")
            case _:
                return Unreachable(f"cannot connect to Kafka at {servers}: {error!r}")


def _tokens(given: Mapping[str, Any]) -> TokenSource | None:
    mechanism = given.get("sasl_mechanism")
    if mechanism == aws_iam.MECHANISM:
        return aws_iam.source_of(given)
    return oauth.source_of(given) if mechanism == OAUTHBEARER else None


_TELLING = (kafka_errors.KafkaError, OSError, ValueError, TypeError, AssertionError)
_COMMITTED: Mapping[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
}


def _writing() -> dict[str, Any]:
    return {
        "acks": "all",
        "enable_idempotence": True,
        "allow_auto_create_topics": False,
        "batch_size": 262_144,
        "request_timeout_ms": timeouts.REQUEST_MS,
        "delivery_timeout_ms": timeouts.DELIVERY_MS,
        "max_block_ms": 30_000,
    }


def servers_of(url: str | None) -> list[str]:
    """`kafka://host:9092,host2:9092` as a list of host:port."""
    scheme, _, written = (url or "").partition("://")
    servers = [each for each in written.split(",") if each]
    if scheme not in SCHEMES or not servers or "/" in written:
        raise Misconfigured(
            f"log.url is {url!r}; write it as kafka://host:9092, several hosts divided by commas"
        )
    return servers
