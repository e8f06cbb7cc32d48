"""What users write today: kafka-python, River's Perceptron, a dict of waiting examples. At least once.

A crash loses the dict and the weights; a rebalance counts twice. It is here for its speed. It reads one
partition after the other as the client hands them out, so the model that predicts is older than ours or Quix's: its
column of mistakes shows it.
"""

import json

from kafka import KafkaConsumer, KafkaProducer

from tests.benchmarks.contenders.river_model import RiverModel
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
    clock, output = Clock(task.records), f"{task.prefix}predictions"
    model, waiting, early = RiverModel(clock), {}, {}

    while model.labelled < task.records:
        for records in consumer.poll(timeout_ms=500).values():
            clock.start()
            for record in records:
                message = json.loads(record.value)
                record_id = message["id"]
                if record.topic == task.examples:
                    features = message["features"]
                    predicted = model.predict(features)
                    told = {"id": record_id, "prediction": predicted, "features": features}
                    producer.send(output, json.dumps(told).encode(), record.key)
                    if record_id in early:
                        model.learn(features, predicted, early.pop(record_id))
                    else:
                        waiting[record_id] = features, predicted
                elif record_id in waiting:
                    model.learn(*waiting.pop(record_id), message["label"])
                else:
                    early[record_id] = message["label"]
        producer.flush()
        consumer.commit()
    clock.done(model.labelled, mistakes=model.mistakes)
    producer.close()
    consumer.close(autocommit=False)


if __name__ == "__main__":
    main(Task.given())
