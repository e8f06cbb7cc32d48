"""kafka-python as the log's `Client`."""

from functools import partial

from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.fetch import KafkaPythonFetcher
from mistakebound.log.kafka.kafka_python.send import KafkaPythonSender
from mistakebound.log.kafka.kafka_python.session import KafkaPythonSession


class KafkaPythonClient:
    """Makes what the log is made of, each with a connection of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.sender = partial(KafkaPythonSender, cluster)
        self.session = partial(KafkaPythonSession, cluster)

    def fetcher(self, *, follows: bool) -> KafkaPythonFetcher:  # noqa: ARG002 - no read waits for an earlier one here
        """A consumer outside any group."""
        return KafkaPythonFetcher(self._cluster)
