"""Quix Streams and River: two topics, one state store of waiting examples, `options.guarantee` as Quix names it.

The model is in the process's memory: Quix keeps state by key, and one model is not by key.
"""

import logging
from typing import Any

from quixstreams import Application
from quixstreams.state import State

from tests.benchmarks.contenders.river_model import RiverModel
from tests.benchmarks.contenders.task import Clock, Task


def main(task: Task) -> None:
    app = Application(
        broker_address=task.bootstrap,
        consumer_group=f"{task.prefix}group",
        auto_offset_reset="earliest",
        processing_guarantee=task.options["guarantee"],
        commit_every=task.options.get("commit_every", 4_000),
        state_dir=task.options["folder"],
        loglevel=logging.ERROR,
        auto_create_topics=True,
    )
    examples = app.dataframe(app.topic(task.examples, value_deserializer="json"))
    labels = app.dataframe(app.topic(task.labels, value_deserializer="json"))
    output = app.topic(f"{task.prefix}predictions", value_serializer="json")
    clock = Clock(task.records)
    model = RiverModel(clock)

    def learn(features: Any, predicted: Any, label: Any) -> None:
        model.learn(features, predicted, label)
        if model.labelled == task.records:
            app.stop()

    def handle(message: dict[str, Any], state: State) -> dict[str, Any] | None:
        clock.start()
        if "features" in message:
            features = message["features"]
            predicted = model.predict(features)
            early = state.get("early")
            if early is not None:
                state.delete("early")
                learn(features, predicted, early["label"])
            else:
                state.set("waiting", [features, predicted])
            return {"id": message["id"], "prediction": predicted, "features": features}
        waiting = state.get("waiting")
        if waiting is None:
            state.set("early", {"label": message["label"]})
        else:
            state.delete("waiting")
            learn(waiting[0], waiting[1], message["label"])
        return None

    joined = examples.concat(labels).apply(handle, stateful=True).filter(lambda told: told is not None)
    joined.to_topic(output)
    app.run()
    clock.done(model.labelled, mistakes=model.mistakes)


if __name__ == "__main__":
    main(Task.given())
