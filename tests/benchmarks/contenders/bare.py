"""Transactions of one record, one after another, of the same client; each second one commits offsets, too.

    python -m tests.benchmarks.contenders.bare JSON

JSON: `bootstrap`, `topic`, `warm_up` and `count` (of each kind), `group` (of those offsets), `bytes` (of a
record). The id in a record says its kind and the moment before its transaction began.
"""

import json
import sys
import time
from typing import Any

from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition

from tests.benchmarks.contenders.limit import PRODUCER


def main(given: dict[str, Any]) -> None:
    producer = KafkaProducer(
        bootstrap_servers=given["bootstrap"], transactional_id=f"{given['topic']}-id", **PRODUCER
    )
    producer.init_transactions()
    place, filling = TopicPartition(given["topic"], 0), b"x" * given["bytes"]
    for number in range(-2 * given["warm_up"], 2 * given["count"]):
        kind = b"warm-up" if number < 0 else (b"plain", b"offsets")[number % 2]
        record_id = b"%s-%d" % (kind, time.monotonic_ns())
        producer.begin_transaction()
        producer.send(given["topic"], b'{"id":"%s","filling":"%s"}' % (record_id, filling), partition=0)
        if number % 2:
            producer.flush()
            offsets = {place: OffsetAndMetadata(number + 2 * given["warm_up"], "", -1)}
            producer.send_offsets_to_transaction(offsets, given["group"])
        producer.commit_transaction()
    producer.close()
    print(json.dumps({"sent": 2 * given["count"]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
