"""The log on Apache Kafka 4: transactions, group, and reads by offset. The only importer of kafka-python."""

from mistakebound.log.kafka.log import KafkaLog
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings


def open_log(settings: Settings) -> Log:
    """Connect to the brokers of `log.url`. Raises Unreachable, Refused."""
    return KafkaLog(settings)


__all__ = ["KafkaLog", "open_log"]
