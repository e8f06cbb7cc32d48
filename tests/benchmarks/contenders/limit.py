"""The limit: a transactional pass-through of the same client with the same settings. It learns nothing.

Poll examples and labels, send each example on, then the offsets, then commit: what any exactly-once worker on
kafka-python must do at least.
"""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata

from tests.benchmarks.contenders.task import Clock, Task

CONSUMER: dict[str, Any] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "isolation_level": "read_committed",
    "max_poll_records": 4_000,
    "fetch_max_wait_ms": 100,
    "session_timeout_ms": 10_000,
}
PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "batch_size": 262_144,
    "request_timeout_ms": 5_000,
    "delivery_timeout_ms": 8_000,
    "transaction_timeout_ms": 10_000,
    "retry_backoff_ms": 5,
}


def main(task: Task) -> None:
    consumer = KafkaConsumer(bootstrap_servers=task.bootstrap, group_id=f"{task.prefix}group", **CONSUMER)
    consumer.subscribe([task.examples, task.labels])
    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        transactional_id=f"{task.prefix}id-{task.options.get('slot', 0)}",
        **PRODUCER,
    )
    producer.init_transactions()
    clock, output = Clock(task.records), f"{task.prefix}predictions"
    examples = labels = transactions = 0
    while min(examples, labels) < task.records:
        polled = consumer.poll(timeout_ms=500)
        if not polled:
            continue
        clock.start()
        producer.begin_transaction()
        offsets = {}
        for place, records in polled.items():
            if place.topic == task.examples:
                for record in records:
                    producer.send(output, record.value, record.key, partition=record.partition)
                examples += len(records)
            else:
                labels += len(records)
            offsets[place] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        clock.reached(labels)
        producer.flush()
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        transactions += 1
    clock.done(labels, transactions=transactions)
    producer.close()
    consumer.close(autocommit=False)


if __name__ == "__main__":
    main(Task.given())
