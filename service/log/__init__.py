"""Logs: where records live. `open_log` chooses the implementation by `log.url`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.log.protocol import Log
    from service.settings import Settings

ACCEPTED_URLS = "kafka://HOST:PORT[,HOST:PORT...], sqlite:FILE or sqlite::memory:"


def open_log(settings: "Settings") -> "Log":
    """Open the log that `log.url` names. Raises Unreachable for any other form of URL.

    Each implementation is imported only when it is asked for: a demo on sqlite needs no Kafka client.
    """
    from service.log.protocol import Unreachable

    url = settings.log.url
    if url is not None and url.startswith("kafka://"):
        from service.log import kafka

        return kafka.open_log(settings)
    if url is not None and url.startswith("sqlite:"):
        from service.log import sqlite

        return sqlite.open_log(settings)
    raise Unreachable(f"log.url is {url!r}; it must be {ACCEPTED_URLS}")
