"""The log on Apache Kafka 4.

`log.py` is the log; `read.py` and `write.py` hold the rules of reads and of transactions, above two small
ports (`ports.py`). Each client is in a folder of its own: kafka-python in `kafka_python/`, which administers
the cluster for both, librdkafka in `confluent/`.
"""

from mistakebound.log.kafka.log import KafkaLog

__all__ = ["KafkaLog"]
