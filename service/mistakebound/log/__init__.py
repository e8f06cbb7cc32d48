"""Logs: where records live. `open_log` chooses the implementation by `log.url`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

ACCEPTED_URLS = "kafka://HOST:PORT[,HOST:PORT...], kafka+confluent://..., sqlite:FILE or sqlite::memory:"


def open_log(settings: "Settings") -> "Log":
    """Open the log that `log.url` names. Raises Unreachable for any other form of URL.

    Each implementation is imported only when it is asked for: a demo on sqlite needs no Kafka client.
    """
    from mistakebound.log.protocol import Misconfigured, Unreachable

    url = settings.log.url
    if url is not None and url.startswith("kafka://"):
        from mistakebound.log.kafka.log import KafkaLog

        return KafkaLog(settings)
    if url is not None and url.startswith("kafka+confluent://"):
        try:
            from mistakebound.log.kafka.confluent.client import ConfluentClient
            from mistakebound.log.kafka.log import KafkaLog
        except ImportError as error:
            raise Misconfigured(
                f"log.url is {url!r}, but {error.name} is not installed; "
                "`pip install 'mistakebound[confluent]'`, or write it as kafka://..."
            ) from error

        return KafkaLog(settings, ConfluentClient)
    if url is not None and url.startswith("sqlite:"):
        from mistakebound.log import sqlite

        return sqlite.open_log(settings)
    raise Unreachable(f"log.url is {url!r}; it must be {ACCEPTED_URLS}")
