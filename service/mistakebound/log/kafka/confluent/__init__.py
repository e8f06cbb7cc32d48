"""Kafka by way of librdkafka: what moves many records. An extra, `pip install 'mistakebound[confluent]'`.

Topics, committed positions and watermarks are asked for as `mistakebound.log.kafka` does it; membership,
transactions and reads by offset go through `confluent_kafka`, which only this package imports.
"""

from mistakebound.log.kafka.confluent.log import ConfluentLog
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings


def open_log(settings: Settings) -> Log:
    """Connect to the brokers of `log.url`. Raises Unreachable, Refused, Misconfigured."""
    return ConfluentLog(settings)


__all__ = ["ConfluentLog", "open_log"]
