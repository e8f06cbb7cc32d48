"""The limit of the other client: the same transactional pass-through with confluent-kafka. It learns nothing."""

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.contenders.task import Clock, Task

CONSUMER: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "session.timeout.ms": 10_000,
    "queued.max.messages.kbytes": 32_768,
}
PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "batch.size": 262_144,
    "linger.ms": 2,
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 8_000,
    "transaction.timeout.ms": 10_000,
    "retry.backoff.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
}
MAX_RECORDS = 4_000
FULL_S = 0.05
"""So long a batch is waited for, as ours waits by default."""
PATIENCE_S = 30.0


def main(task: Task) -> None:
    everywhere = {"bootstrap.servers": task.bootstrap}
    consumer = Consumer({**everywhere, "group.id": f"{task.prefix}group", **CONSUMER})
    consumer.subscribe([task.examples, task.labels])
    producer = Producer({**everywhere, "transactional.id": f"{task.prefix}id", **PRODUCER})
    producer.init_transactions(PATIENCE_S)
    clock, output = Clock(task.records), f"{task.prefix}predictions"
    examples = labels = transactions = 0
    while min(examples, labels) < task.records:
        messages = consumer.consume(MAX_RECORDS, FULL_S)
        if not messages:
            continue
        clock.start()
        producer.begin_transaction()
        offsets: dict[tuple[str, int], int] = {}
        for message in messages:
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            topic, partition = message.topic(), message.partition()
            if topic == task.examples:
                producer.produce(output, message.value(), message.key(), partition=partition)
                examples += 1
            else:
                labels += 1
            offsets[topic, partition] = message.offset() + 1
        clock.reached(labels)
        producer.send_offsets_to_transaction(
            [TopicPartition(*place, offset) for place, offset in offsets.items()],
            consumer.consumer_group_metadata(),
            PATIENCE_S,
        )
        producer.commit_transaction(PATIENCE_S)
        transactions += 1
    clock.done(labels, transactions=transactions)
    consumer.close()


if __name__ == "__main__":
    main(Task.given())
