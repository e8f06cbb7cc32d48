"""Faust and River: an agent for each topic, two tables of what waits, in memory with changelogs. At least once.

The model is in the process's memory: Faust keeps state by partition, and one model is not by partition.

There is no contender with Faust's `processing_guarantee="exactly_once"`: its transactions leave the predictions
out. It names a transaction by the output's partition, for which it asks the consumer, which knows only the topics
that it reads: so every prediction goes through the producer without transactions
(https://github.com/faust-streaming/faust/issues/177, seen in 0.15.3).
"""

import asyncio
from typing import Any

import faust

from tests.benchmarks.contenders.river_model import RiverModel
from tests.benchmarks.contenders.task import Clock, Task


async def main(task: Task) -> None:
    app = faust.App(
        f"{task.prefix}group",
        broker=f"kafka://{task.bootstrap}",
        store="memory://",
        datadir=task.options["folder"],
        processing_guarantee="at_least_once",
        broker_commit_every=4_000,
        consumer_auto_offset_reset="earliest",
        producer_max_batch_size=262_144,
        producer_linger=0.1,  # with the 5 ms of the users' loop it sends a handful at a time, and is slower
        topic_partitions=task.options["partitions"],
        topic_replication_factor=1,
        web_enabled=False,
    )
    json_topic: dict[str, Any] = {"key_serializer": "raw", "value_serializer": "json"}
    examples, labels = app.topic(task.examples, **json_topic), app.topic(task.labels, **json_topic)
    output = app.topic(f"{task.prefix}predictions", **json_topic)
    waiting, early = app.Table("waiting"), app.Table("early")
    clock, ended = Clock(task.records), asyncio.Event()
    model = RiverModel(clock)

    def learn(features: Any, predicted: Any, label: Any) -> None:
        model.learn(features, predicted, label)
        if model.labelled == task.records:
            ended.set()

    @app.agent(examples)
    async def predict(stream: Any) -> None:
        async for key, message in stream.items():
            clock.start()
            record_id, features = message["id"], message["features"]
            predicted = model.predict(features)
            await output.send(key=key, value={"id": record_id, "prediction": predicted, "features": features})
            # Looked up only now: while it was sent, the label may have come.
            if record_id in early:
                learn(features, predicted, early.pop(record_id))
            else:
                waiting[record_id] = [features, predicted]

    @app.agent(labels)
    async def match(stream: Any) -> None:
        async for message in stream:
            clock.start()
            record_id, label = message["id"], message["label"]
            if record_id in waiting:
                learn(*waiting.pop(record_id), label)
            else:
                early[record_id] = label

    await app.start()
    await ended.wait()
    await app.consumer.wait_empty()  # flushes what was sent, then commits
    clock.done(model.labelled, mistakes=model.mistakes)
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main(Task.given()))
