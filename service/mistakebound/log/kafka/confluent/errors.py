"""librdkafka's errors in the log's own words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from mistakebound.log.kafka.kafka_python.errors import PAST_DAMAGE
from mistakebound.log.protocol import LogError, OffsetLost, Refused, Unreachable

Errors = Callable[[KafkaError], None]
"""What a client calls with errors that belong to no call."""

FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)
STALE = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS}
)
PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})
"""The client goes on by itself; deadlines are ours."""
AUTH_REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED})
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_REMEDIES: tuple[tuple[frozenset[int], type[LogError], str], ...] = (
    (
        frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}),
        OffsetLost,
        "records were deleted before they were read: `mistakebound run --skip-to-oldest` goes on from the oldest that "
        "is there, and counts what was lost",
    ),
    (
        frozenset({KafkaError._BAD_MSG}),
        Refused,
        PAST_DAMAGE,
    ),
    (AUTH_REFUSED, Unreachable, "correct kafka.security_protocol, the kafka.ssl_* and kafka.sasl_* options"),
    (_DENIED, Refused, "grant this user the rights in deploy/security.md"),
    (
        frozenset({KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG}),
        Refused,
        "a record there is damaged; the broker takes no such records from producers, so look at its disk, and "
        "restore the partition from a replica or a backup",
    ),
    (
        frozenset(
            {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
        ),
        Refused,
        "make the topics with `mistakebound topics create`",
    ),
)


def in_our_words(doing: str, error: KafkaError) -> LogError:
    """What was done, what is wrong, what to do about it."""
    for codes, kind, remedy in _REMEDIES:
        if error.code() in codes:
            return kind(f"{doing}: {error.str()}; {remedy}")
    return Unreachable(f"{doing}: {error.str()}")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn librdkafka's errors into the log's, and say first what was being done."""
    try:
        yield
    except KafkaException as error:
        raise in_our_words(doing, cause_of(error)) from error


def cause_of(error: KafkaException) -> KafkaError:
    """The KafkaError that an exception carries."""
    found = error.args[0]
    assert isinstance(found, KafkaError)
    return found
