"""A consumer that reads the predictions all the time."""

import json
import threading
from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, TopicPartition

from tests.faults.support.children import until
from tests.faults.support.deployment import PARTITIONS, PATIENCE_S


class Onlooker:
    """Reads committed predictions all the time, as a user would, and notes the ids that it has seen."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: set[str] = set()
        self.failed: BaseException | None = None
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="none",
            enable_auto_commit=False,
        )
        places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        self._consumer.assign(places)
        for each in places:
            self._consumer.seek(each, 0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="onlooker", daemon=True)

    def saw_once(self, predicted: set[str]) -> None:
        """Wait until it has seen all of these; it must have seen each once, and nothing else."""
        until(
            lambda: self.failed or len(self.seen) >= len(predicted),
            PATIENCE_S,
            "the onlooker has seen every prediction",
        )
        assert self.failed is None, self.failed
        assert self.seen == predicted

    def _look(self) -> None:
        try:
            while not self._done.is_set():
                for batch in self._consumer.poll(timeout_ms=100).values():
                    for record in batch:
                        record_id = json.loads(record.value)["id"]
                        assert record_id not in self.seen, f"{record_id} was seen twice, at last in {record}"
                        self.seen.add(record_id)
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            self.failed = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(30)
        self._consumer.close(autocommit=False)
