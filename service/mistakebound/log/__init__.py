"""Logs: where records live. `open_log` chooses the implementation by `log.url`."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

ACCEPTED_URLS = "kafka://HOST:PORT[,HOST:PORT...], kafka+confluent://..., sqlite:FILE or sqlite::memory:"


def open_log(settings: "Settings") -> "Log":
    """Open the log that `log.url` names. Raises Unreachable for any other form of URL.

    Each implementation is imported only when it is asked for: a demo on sqlite needs no Kafka client.
    """
    from mistakebound.log.protocol import Unreachable

    url = settings.log.url
    if url is not None and url.startswith("kafka://"):
        from mistakebound.log.kafka.log import KafkaLog

        return KafkaLog(settings)
    if url is not None and url.startswith("kafka+confluent://"):
        with _named_if_missing(url):
            from mistakebound.log.kafka.confluent.client import ConfluentClient
            from mistakebound.log.kafka.log import KafkaLog

        return KafkaLog(settings, ConfluentClient)
    if url is not None and url.startswith("sqlite:"):
        from mistakebound.log import sqlite

        return sqlite.open_log(settings)
    raise Unreachable(f"log.url is {url!r}; it must be {ACCEPTED_URLS}")


def check_client(settings: "Settings") -> None:
    """Raise Misconfigured where the log's client could not be made with these settings. Asks no broker."""
    url = settings.log.url or ""
    if not url.startswith("kafka"):
        return
    from mistakebound.log.kafka.kafka_python.make_clients import Connection

    given = Connection(settings).given
    if url.startswith("kafka+confluent:"):
        with _named_if_missing(url):
            from mistakebound.log.kafka.confluent.client import translated_options

        translated_options(given)


@contextmanager
def _named_if_missing(url: str) -> "Iterator[None]":
    from mistakebound.log.protocol import Misconfigured

    try:
        yield
    except ImportError as error:
        raise Misconfigured(
            f"log.url is {url!r}, but {error.name} is not installed; "
            "`pip install 'mistakebound[confluent]'`, or write it as kafka://..."
        ) from error
