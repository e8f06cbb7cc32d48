"""Records that confluent-kafka cannot hand out, read once more by kafka-python.

Where a header's name is not UTF-8, confluent-kafka 2.16 gives none of the record's headers, and no other way to them.
Nothing stops a producer from writing such a name.
"""

import time
from collections.abc import Callable

from mistakebound.core.records import Record, Topic
from mistakebound.log.kafka.kafka_python.cluster import Cluster
from mistakebound.log.kafka.kafka_python.fetch import KafkaPythonFetcher
from mistakebound.log.protocol import Unreachable

FETCH_S = 0.5
WAIT_S = 30.0

Again = Callable[[Topic, int, int], Record]
"""The record of this topic, partition and offset, read in the other way."""


class SecondReading:
    """One consumer, made when it is first needed. Not thread-safe."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fetcher: KafkaPythonFetcher | None = None
        self._fetched: dict[tuple[Topic, int], dict[int, Record]] = {}
        """What the newest fetch of each partition brought: such records seldom come alone."""

    def record(self, topic: Topic, partition: int, offset: int) -> Record:
        """Raises Unreachable where it does not come in time."""
        found = self._fetched.get((topic, partition), {}).get(offset)
        return self._fetch(topic, partition, offset) if found is None else found

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()

    def _fetch(self, topic: Topic, partition: int, offset: int) -> Record:
        if self._fetcher is None:
            self._fetcher = KafkaPythonFetcher(self._cluster)
        doing = f"read {topic}-{partition} again from offset {offset}"
        self._fetcher.start({(topic, partition): offset}, doing)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            records = {record.offset: record for record in self._fetcher.fetch(FETCH_S)}
            if offset in records:
                self._fetched[topic, partition] = records
                return records[offset]
        raise Unreachable(f"{doing}: the record did not come within {WAIT_S:g} s")
