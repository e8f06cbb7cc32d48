"""The client of `kafka+confluent://`: librdkafka does what grows with the stream. The only importer of
`confluent_kafka`, an extra: `pip install 'mistakebound[confluent]'`.

Membership, transactions and reads by offset go through it; topics, committed positions and watermarks are
asked for by kafka-python. Workers of either client may share a group.
"""

from mistakebound.log.kafka.confluent.client import ConfluentClient
from mistakebound.log.kafka.log import KafkaLog
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings


def open_log(settings: Settings) -> Log:
    """Connect to the brokers of `log.url`. Raises Unreachable, Refused, Misconfigured."""
    return KafkaLog(settings, ConfluentClient)


__all__ = ["open_log"]
