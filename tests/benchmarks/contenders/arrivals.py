"""Examples at a steady rate, numbered from 0, and labels behind them.

    python -m tests.benchmarks.contenders.arrivals JSON

JSON: `bootstrap`, `examples`, `labels`, `partitions`, `rate` (examples a second), `seconds`,
`delay_s` (between an example and its label). The client holds records back for 5 ms, its default: one
request a record would load the broker more than the worker does. Prints how many were sent.
"""

import json
import random
import sys
import time
from collections import deque
from typing import Any

from confluent_kafka import Producer

TICK_S = 0.001
FLUSH_S = 30.0
FEATURES = 10


def main(given: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": given["bootstrap"], "linger.ms": 5, "acks": "all"})
    for topic in (given["examples"], given["labels"]):
        producer.list_topics(topic, FLUSH_S)
    chance = random.Random(7)
    features = [_features(chance) for _ in range(1_000)]
    total, behind = given["rate"] * given["seconds"], round(given["rate"] * given["delay_s"])
    unlabelled: deque[tuple[int, bytes]] = deque()
    sent, began = 0, time.monotonic()
    while sent < total:
        due = min(total, int((time.monotonic() - began) * given["rate"]))
        while sent < due:
            partition = sent % given["partitions"]
            record_id = b"%d" % sent
            value = b'{"id":"%s","features":%s}' % (record_id, features[sent % len(features)])
            producer.produce(given["examples"], value, record_id, partition=partition)
            unlabelled.append((partition, record_id))
            sent += 1
            if len(unlabelled) > behind:
                partition, record_id = unlabelled.popleft()
                value = b'{"id":"%s","label":%s}' % (record_id, chance.choice((b"true", b"false")))
                producer.produce(given["labels"], value, record_id, partition=partition)
        producer.poll(0)
        time.sleep(TICK_S)
    producer.flush(FLUSH_S)
    print(json.dumps({"sent": sent, "seconds": time.monotonic() - began}))


def _features(chance: random.Random) -> bytes:
    named = {f"feature_{place}": round(chance.gauss(0, 1), 3) for place in range(FEATURES)}
    return json.dumps(named).encode()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
