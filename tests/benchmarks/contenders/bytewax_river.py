"""Bytewax and River, at least once: both topics read to their ends, a state by id for what waits, snapshots in a folder.

The model is in the process's memory: Bytewax keeps state by key, and one model is not by key.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from bytewax import operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from tests.benchmarks.contenders.river_model import RiverModel
from tests.benchmarks.contenders.task import Clock, Task


def main(task: Task) -> None:
    clock = Clock(task.records)
    model = RiverModel(clock)

    def keyed(record: Any) -> tuple[str, dict[str, Any]]:
        clock.start()
        message = json.loads(record.value)
        return message["id"], message

    def handle(held: Any, message: dict[str, Any]) -> tuple[Any, Any]:
        """What is held of an id afterwards, and the prediction if there is one."""
        if "features" not in message:
            if held is None:
                return ("early", message["label"]), None
            model.learn(*held[1], message["label"])
            return None, None
        features = message["features"]
        predicted = model.predict(features)
        told = {"id": message["id"], "prediction": predicted, "features": features}
        if held is None:
            return ("waiting", (features, predicted)), told
        model.learn(features, predicted, held[1])
        return None, told

    def written(told: tuple[str, Any]) -> KafkaSinkMessage[bytes, bytes]:
        return KafkaSinkMessage(told[0].encode(), json.dumps(told[1]).encode())

    flow = Dataflow("learn")
    source = KafkaSource([task.bootstrap], [task.examples, task.labels], tail=False)
    read = op.map("by-id", op.input("read", flow, source), keyed)
    told = op.filter("predicted", op.stateful_map("join", read, handle), lambda each: each[1] is not None)
    op.output(
        "write",
        op.map("as-json", told, written),
        KafkaSink([task.bootstrap], f"{task.prefix}predictions"),
    )
    snapshots = Path(task.options["folder"]) / "snapshots"
    snapshots.mkdir()
    init_db_dir(snapshots, 1)
    cluster_main(flow, [], 0, epoch_interval=timedelta(seconds=1), recovery_config=RecoveryConfig(snapshots))
    clock.done(model.labelled, mistakes=model.mistakes)


if __name__ == "__main__":
    main(Task.given())
