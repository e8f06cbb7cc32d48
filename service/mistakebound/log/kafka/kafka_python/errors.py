"""kafka-python's errors in the log's own words: what was done, what is wrong, what to do about it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import kafka.errors as kafka_errors

from mistakebound.log.kafka.kafka_python.auth_errors import refusal
from mistakebound.log.protocol import LogError, OffsetLost, Refused, Unreachable

KINDS = {
    kafka_errors.TopicAuthorizationFailedError: "topic",
    kafka_errors.GroupAuthorizationFailedError: "group",
    kafka_errors.TransactionalIdAuthorizationFailedError: "transactional id",
    kafka_errors.ClusterAuthorizationFailedError: "cluster",
}
"""What each error of the broker's authorizer is about."""
PAST_DAMAGE = (
    "bring the batch back from a replica; what was recorded before, `mistakebound audit --recording` reads. If it is of an "
    "input and no worker has read it, it can be given up: `mistakebound run --skip-to-oldest` passes exactly that batch "
    "and counts it, and then `record` and `audit` pass it, too"
)
"""What to do about a batch that fails its checksum."""


@contextmanager
def translated(what: str | Callable[[], str], *rights: str) -> Iterator[None]:
    """Turn kafka-python's errors into the log's, and say first what was being done (`what`).

    `rights` are what the broker must grant for it, such as `Read on topic examples`; the message names the one
    that the error is about.
    """
    try:
        yield
    except kafka_errors.KafkaError as error:
        doing = what if isinstance(what, str) else what()
        if (reason := refusal(error)) is not None:
            raise Unreachable(f"{doing}: {reason}") from error
        if isinstance(error, kafka_errors.AuthorizationError):
            raise denied(doing, missing_right(error, rights)) from error
        raise _in_our_words(doing, error) from error


def missing_right(error: Exception, rights: Sequence[str]) -> str:
    """The one of `rights` that an error of the broker's authorizer is about."""
    kind = KINDS.get(type(error), "cluster")
    return next((right for right in rights if f" on {kind} " in right), f"what it asks for on the {kind}")


def denied(doing: str, right: str) -> Refused:
    """The broker knows us and does not allow it."""
    return Refused(f"{doing}: the broker does not allow it; grant this user {right}; see deploy/security.md")


def _in_our_words(doing: str, error: Exception) -> LogError:
    match error:
        case kafka_errors.UnsupportedCodecError():
            return Refused(
                f"{doing}: a record there is damaged ({error}); the broker takes no such records from producers, so "
                "look at its disk, and restore the partition from a replica or a backup"
            )
        case kafka_errors.CorruptRecordError():
            return Refused(f"{doing}: a batch there is damaged ({error}); {PAST_DAMAGE}")
        case kafka_errors.OffsetOutOfRangeError() | kafka_errors.LogTruncationError():
            return OffsetLost(
                f"{doing}: {error}; records were deleted before they were read: `mistakebound run "
                "--skip-to-oldest` goes on from the oldest that is there, and counts what was lost"
            )
        case kafka_errors.UnknownTopicOrPartitionError():
            return Refused(f"{doing}: {error}; make the topics with `mistakebound topics create`")
        case kafka_errors.RetriableError() | kafka_errors.UnknownBrokerIdError():
            return Unreachable(f"{doing}: the broker did not answer in time ({error!r})")
        case _:
            return LogError(f"{doing}: {error!r}")
