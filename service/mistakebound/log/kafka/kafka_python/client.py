"""kafka-python as the log's `Client`."""

from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.fetch import KafkaPythonFetcher
from mistakebound.log.kafka.kafka_python.send import KafkaPythonSender
from mistakebound.log.kafka.kafka_python.session import KafkaPythonSession
from mistakebound.log.kafka.write import Writer


class KafkaPythonClient:
    """Makes what the log is made of, each with a connection of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def fetcher(self) -> KafkaPythonFetcher:
        """A consumer outside the group."""
        return KafkaPythonFetcher(self._cluster.connection.reader(), self._cluster.names)

    def sender(self, transactional_id: str) -> KafkaPythonSender:
        """A producer with a stable id, not yet initialised."""
        return KafkaPythonSender(self._cluster.connection, self._cluster.names, transactional_id)

    def session(self, partitions: int, slot: str, writer: Writer) -> KafkaPythonSession:
        """Join the group as `slot`."""
        return KafkaPythonSession(self._cluster, partitions, slot, writer)
