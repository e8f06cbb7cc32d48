"""What users write today: kafka-python, River's Perceptron, a dict of waiting examples. At least once.

A crash loses the dict and the weights; a rebalance counts twice. It is here for its speed. It reads one
partition after the other as the client hands them out, so the model that predicts is older than ours or Quix's: its
column of mistakes shows it.
"""

import json
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from river.linear_model import Perceptron

from tests.benchmarks.contenders.task import Clock, Task


def main(task: Task) -> None:
    consumer = KafkaConsumer(
        task.examples,
        task.labels,
        bootstrap_servers=task.bootstrap,
        group_id=f"{task.prefix}group",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=4_000,
    )
    producer = KafkaProducer(bootstrap_servers=task.bootstrap, acks="all", batch_size=262_144, linger_ms=5)
    model, waiting, early = Perceptron(), {}, {}
    clock, labelled, mistakes, output = Clock(task.records), 0, 0, f"{task.prefix}predictions"

    def learn(found: tuple[Any, Any], label: Any) -> None:
        nonlocal labelled, mistakes
        features, predicted = found
        labelled += 1
        clock.reached(labelled)
        mistakes += predicted != label
        model.learn_one(features, label)

    while labelled < task.records:
        for records in consumer.poll(timeout_ms=500).values():
            clock.start()
            for record in records:
                message = json.loads(record.value)
                record_id = message["id"]
                if record.topic == task.examples:
                    features = message["features"]
                    predicted = model.predict_one(features)
                    told = {"id": record_id, "prediction": predicted, "features": features}
                    producer.send(output, json.dumps(told).encode(), record.key)
                    if record_id in early:
                        learn((features, predicted), early.pop(record_id))
                    else:
                        waiting[record_id] = features, predicted
                elif record_id in waiting:
                    learn(waiting.pop(record_id), message["label"])
                else:
                    early[record_id] = message["label"]
        producer.flush()
        consumer.commit()
    clock.done(labelled, mistakes=mistakes)
    producer.close()
    consumer.close(autocommit=False)


if __name__ == "__main__":
    main(Task.given())
