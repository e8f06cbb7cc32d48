"""From settings to clients: what a client is told, what a user may change, and what errors mean.

Guarantees:

1. Every consumer reads committed records only, commits nothing by itself and never jumps to an end.
2. Options that the log's promises rest on are refused by name when the user gives them; all others of
   kafka-python (TLS, SASL, buffers ...) reach every client that knows them.
3. A wrong address or a silent broker is an `Unreachable` that names it, within `bootstrap_timeout_ms`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
import kafka.record.util
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.net.compat import KafkaNetClient

from service.core.records import TOPICS, Headers, Record, Topic
from service.log.protocol import LogError, OffsetLost, Refused, Unreachable
from service.settings import Settings

SCHEME = "kafka://"
REQUEST_MS = 5_000
DELIVERY_MS = 8_000
TRANSACTION_MS = 10_000
"""In this order: a batch is given up before the broker would abort the transaction around it."""

GUARDED: Mapping[str, str] = {
    "bootstrap_servers": "it comes from `log.url`",
    "group_id": "it comes from `worker.group`",
    "client_id": "it names the worker's slot",
    "group_instance_id": "the slot already fences",
    "transactional_id": "it comes from `worker.group` and `worker.slot`",
    "transaction_timeout_ms": "an open transaction holds up every reader",
    "delivery_timeout_ms": "a batch must be given up before its transaction is",
    "request_timeout_ms": "a request must be given up before its batch is",
    "enable_auto_commit": "positions are committed with the results, or not at all",
    "auto_commit_interval_ms": "positions are committed with the results, or not at all",
    "default_offset_commit_callback": "positions are committed with the results, or not at all",
    "auto_offset_reset": "a lost position is refused, never guessed",
    "isolation_level": "only committed records count",
    "check_crcs": "a damaged record must not pass",
    "partition_assignment_strategy": "examples and labels of a partition must stay together",
    "allow_auto_create_topics": "topics are made by `mistakebound topics create`",
    "key_deserializer": "an error in it stops the client for ever",
    "value_deserializer": "an error in it stops the client for ever",
    "key_serializer": "records are written as they are",
    "value_serializer": "records are written as they are",
    "partitioner": "a key's partition is fixed by murmur2",
    "enable_idempotence": "a repeated request must not repeat its records",
    "acks": "a record is written when all replicas have it",
    "retries": "a repeated request must not repeat its records",
    "max_in_flight_requests_per_connection": "records keep their order",
    "consumer_timeout_ms": "the log waits by its own deadlines",
    "kafka_client": "the log rests on this client",
}
"""Options that the log's promises rest on, and why each is not for the user."""

Client = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Names:
    """Logical topics and their names on the broker, both ways."""

    to_broker: Mapping[Topic, str]
    to_logical: Mapping[str, Topic]

    @classmethod
    def of(cls, settings: Settings) -> "Names":
        """Raise Refused where two logical topics share one name."""
        to_broker: dict[Topic, str] = {topic: settings.topic_name(topic) for topic in TOPICS}
        to_logical = {name: topic for topic, name in to_broker.items()}
        if len(to_logical) < len(to_broker):
            listed = ", ".join(f"{topic}={name}" for topic, name in to_broker.items())
            raise Refused(f"topics must have names of their own; `topics.*` gives {listed}")
        return cls(to_broker, to_logical)

    def at(self, topic: Topic, partition: int) -> TopicPartition:
        """The broker's name of one partition."""
        return TopicPartition(self.to_broker[topic], partition)

    def record(self, fetched: Any) -> Record:
        """A fetched record as the core knows it."""
        headers: Headers = tuple(fetched.headers)
        return Record(
            self.to_logical[fetched.topic],
            fetched.partition,
            fetched.offset,
            fetched.timestamp,
            fetched.key,
            fetched.value,
            headers,
        )


class Connection:
    """Makes clients of one cluster. Holds no connection itself."""

    def __init__(self, settings: Settings) -> None:
        """Raise Refused for a guarded or unknown option, a bad address, or a missing crc32c."""
        if kafka.record.util.crc32c_c is None:
            raise Refused(
                "the native code of crc32c is missing, without it Kafka is read twenty times slower; "
                "install `kafka-python[crc32c]` for this Python"
            )
        self.servers = servers_of(settings.log.url)
        self.group = settings.group
        self._given = dict(settings.kafka)
        guarded = [f"kafka.{name} ({GUARDED[name]})" for name in self._given if name in GUARDED]
        if guarded:
            raise Refused(f"these options are not for the user, remove them: {'; '.join(guarded)}")
        known = {
            *KafkaConsumer.DEFAULT_CONFIG,
            *KafkaProducer.DEFAULT_CONFIG,
            *KafkaAdminClient.DEFAULT_CONFIG,
        }
        unknown = sorted(set(self._given) - known)
        if unknown:
            raise Refused(
                f"kafka-python has no option {', '.join(unknown)}; correct or remove it under [kafka]"
            )

    def admin(self) -> Any:
        """A client for topics, offsets and groups."""
        return self._make(KafkaAdminClient, {})

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
            "session_timeout_ms": 10_000,
            "fetch_max_wait_ms": 100,
        }
        return self._make(KafkaConsumer, ours)

    def observer(self) -> Any:
        """A consumer that knows the group's positions and never joins it."""
        return self._make(KafkaConsumer, {**_COMMITTED, "group_id": self.group})

    def transactional(self, transactional_id: str) -> Any:
        """A producer with stable id, not yet initialised."""
        ours = {
            **_WRITING,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": TRANSACTION_MS,
            # The broker still writes the last transaction's markers when the next one begins; the
            # client then waits one whole backoff: 100 ms by default.
            "retry_backoff_ms": 5,
        }
        return self._make(KafkaProducer, ours)

    def plain(self) -> Any:
        """A producer outside transactions; retries do not repeat records."""
        return self._make(KafkaProducer, {**_WRITING, "linger_ms": 5})

    def client_id(self, slot: str) -> str:
        """How a slot's consumer calls itself; a successor knows its predecessor by it."""
        return f"{self.group}-{slot}"

    @property
    def max_request_bytes(self) -> int:
        """Largest request that producers send."""
        return int(self._given.get("max_request_size", KafkaProducer.DEFAULT_CONFIG["max_request_size"]))

    def options(self, client: Client, ours: Mapping[str, Any]) -> dict[str, Any]:
        """All that `client` is told: our defaults, then the user's options, then what is guarded."""
        known: Mapping[str, Any] = client.DEFAULT_CONFIG  # type: ignore[attr-defined]
        given = {name: value for name, value in self._given.items() if name in known}
        everywhere = {"bootstrap_servers": self.servers, "bootstrap_timeout_ms": 10_000}
        return {**everywhere, "metadata_max_age_ms": 30_000, **ours, **given}

    def _make(self, client: Client, ours: Mapping[str, Any]) -> Any:
        options = self.options(client, ours)
        try:
            return _whole_or_nothing(client, options)
        except kafka_errors.KafkaTimeoutError as error:
            seconds = options["bootstrap_timeout_ms"] / 1000
            raise Unreachable(
                f"no Kafka broker answers at {','.join(self.servers)} within {seconds:g} s ({error}); "
                "correct `log.url`, or the TLS and SASL options under [kafka]"
            ) from error
        except (kafka_errors.KafkaConfigurationError, ValueError, TypeError, AssertionError) as error:
            raise Refused(f"kafka-python does not take the options under [kafka]: {error}") from error
        except (kafka_errors.KafkaError, OSError) as error:
            raise Unreachable(f"cannot connect to Kafka at {','.join(self.servers)}: {error!r}") from error


def _whole_or_nothing(client: Client, options: Mapping[str, Any]) -> Any:
    # A client whose making fails leaves its sockets and its thread behind, and we ask again and again
    # while a broker is away.
    started: list[Any] = []

    def start(*arguments: Any, **named: Any) -> Any:
        started.append(KafkaNetClient(*arguments, **named))
        return started[-1]

    try:
        return client(**options, kafka_client=start)
    except BaseException:
        for each in started:
            each.close()
        raise


_COMMITTED: Mapping[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
}
_WRITING: Mapping[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,
    "batch_size": 262_144,
    "request_timeout_ms": REQUEST_MS,
    "delivery_timeout_ms": DELIVERY_MS,
    "max_block_ms": 30_000,
}


def servers_of(url: str | None) -> list[str]:
    """`kafka://host:9092,host2:9092` as a list of host:port."""
    servers = [each for each in (url or "").removeprefix(SCHEME).split(",") if each]
    if not (url or "").startswith(SCHEME) or not servers or "/" in "".join(servers):
        raise Refused(f"log.url is {url!r}; write it as kafka://host:9092, several hosts divided by commas")
    return servers


@contextmanager
def translated(what: str | Callable[[], str]) -> Iterator[None]:
    """Turn kafka-python's errors into the log's, with `what` was done in front."""
    try:
        yield
    except LogError:
        raise
    except (kafka_errors.KafkaError, UnicodeDecodeError) as error:
        raise _in_our_words(what if isinstance(what, str) else what(), error) from error


def _in_our_words(doing: str, error: Exception) -> LogError:
    match error:
        case UnicodeDecodeError() | kafka_errors.CorruptRecordError():
            return Refused(
                f"{doing}: a record there is damaged, or a header's name is not UTF-8 ({error}); take it "
                "out of the topic, and see to it that its producer writes no more of them"
            )
        case kafka_errors.OffsetOutOfRangeError() | kafka_errors.LogTruncationError():
            return OffsetLost(f"{doing}: {error}; records were deleted, or the topic was made anew")
        case kafka_errors.UnknownTopicOrPartitionError():
            return Refused(f"{doing}: {error}; make the topics with `mistakebound topics create`")
        case kafka_errors.AuthorizationError():
            return Refused(f"{doing}: not allowed ({error!r}); grant it, or correct the SASL options")
        case kafka_errors.RetriableError():
            return Unreachable(f"{doing}: the broker did not answer in time ({error!r})")
        case _:
            return LogError(f"{doing}: {error!r}")
