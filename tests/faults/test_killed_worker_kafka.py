"""The promise after crashes, on Kafka: worker and broker are killed, and every number is derived again."""

import json
import random
import threading
import time
from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, TopicPartition

from tests.faults.chance import chance_of, examples
from tests.faults.children import Child, Children, until
from tests.faults.deployment import PARTITIONS, PATIENCE_S, Deployment
from tests.faults.killing import KILLED_OFTEN, feed_and_kill
from tests.faults.open_transactions import open_below
from tests.faults.stream import SETTINGS, stream
from tests.kafka.broker import Broker


def test_worker_and_broker_killed_lose_and_double_nothing(
    broker: Broker, prefix: str, children: Children
) -> None:
    """The worker is killed five times and the broker once, at random moments. Afterwards a recount of the
    topics agrees with all that the worker says, to the bit; no transaction is open; and a reader that
    looked on all the time saw each prediction once."""
    chance = chance_of("killed on Kafka")
    records = stream(examples(20_000), chance.randrange(2**32))
    with (
        Deployment(f"kafka://{broker.bootstrap}", prefix, children, *SETTINGS, *KILLED_OFTEN) as place,
        Onlooker(broker.bootstrap, f"{prefix}predictions") as onlooker,
    ):
        feed_and_kill(place, records, chance, kills=5, meanwhile=lambda it: outage(place, it, broker, chance))
        found = place.prove()
        until(
            lambda: onlooker.failed or len(onlooker.seen) >= len(found.predictions),
            PATIENCE_S,
            "the onlooker has seen every prediction",
        )
    assert onlooker.failed is None
    assert onlooker.seen == set(found.predictions)
    assert open_below(broker.bootstrap, prefix) == {}
    assert found.labels["applied"] > 0.9 * examples(20_000)
    assert found.mistakes > 0.1 * examples(20_000)
    assert all(found.examples[name] for name in ("expired", "evicted", "duplicate", "invalid")), found
    assert all(found.labels[name] for name in ("duplicate", "conflict", "expired", "unmatched", "invalid"))


def outage(place: Deployment, worker: Child, broker: Broker, chance: random.Random) -> Child:
    """Kill the broker once the worker is at work again, and start it on its data."""
    before = place.consumed()
    worker = place.lasting(worker, lambda: place.consumed() > before, "the worker is at work again")
    time.sleep(chance.uniform(0, 0.2))
    broker.kill()
    time.sleep(chance.uniform(0, 2))
    broker.start()
    return worker


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

    def _look(self) -> None:
        try:
            while not self._done.is_set():
                for batch in self._consumer.poll(timeout_ms=100).values():
                    for record in batch:
                        identity = json.loads(record.value)["id"]
                        assert identity not in self.seen, f"{identity} was seen twice, at last in {record}"
                        self.seen.add(identity)
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
