"""A worker in the test's own process, its inputs, and a recount of what it wrote."""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from mistakebound.core.messages.schema import (
    Outcomes,
    Prediction,
    Update,
    read_outcomes,
    read_prediction,
    read_update,
)
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.records import Outgoing
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.events import after_commits, show_all
from mistakebound.worker.health import Heartbeat
from mistakebound.worker.loop import Worker
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight
from mistakebound.worker.registry.prefetch import prefetch_of
from mistakebound.worker.takeover import Accepted, WorkerState, fold_updates


def settings_for(url: str = "sqlite::memory:", **sections: Any) -> Settings:
    """Settings with a prefix of their own, without checkpoints unless a folder is given."""
    return Settings.model_validate(
        {
            "log": {"url": url, "prefix": f"t{uuid.uuid4().hex[:8]}."},
            "labels": {"max_delay": 1000},
            "learner": {"kind": "perceptron"},
            "checkpoint": {"url": ""},
            **sections,
        }
    )


def settings_on(file: Path, **sections: Any) -> Settings:
    """The same, on a log in this file."""
    return settings_for(f"sqlite:{file}", **sections)


def altered(settings: Settings, **sections: Any) -> Settings:
    """The same log with other settings."""
    return Settings.model_validate({**settings.model_dump(), **sections})


def only_takes_over(idle: bool) -> bool:
    """A stop at once: for what a worker holds after taking over."""
    return True


@contextmanager
def opened(settings: Settings, partitions: int = 1) -> Iterator[Log]:
    """The log, with its topics."""
    with open_log(settings) as log:
        log.create_topics(partitions, {})
        yield log


def stream(
    count: int, *, delay: int = 5, partitions: int = 1, seed: int = 1, first: int = 0
) -> list[Outgoing]:
    """`count` examples and their labels `delay` examples later, 1 ms apart, with strays among them."""
    random = Random(seed)
    found: list[Outgoing] = []
    for number in range(count + delay):
        now = 1_000 + first + number
        if number < count:
            values = {"a": random.uniform(-1, 1), f"b{random.randrange(5)}": 1.0}
            found.append(example(first + number, values, now, partitions))
        if number >= delay:
            labelled = first + number - delay
            for _ in range(1 + (random.random() < 0.1)):
                found.append(label(labelled, random.random() < 0.5, now, partitions))
            if random.random() < 0.05:
                found.append(Outgoing("labels", labelled % partitions, None, b"nonsense", (), now))
    return found


def example(number: int, values: Any, now: int, partitions: int = 1) -> Outgoing:
    value = json.dumps({"id": f"i{number}", "features": values}).encode()
    return Outgoing("examples", number % partitions, f"i{number}".encode(), value, (), now)


def label(number: int, value: bool, now: int, partitions: int = 1) -> Outgoing:
    content = json.dumps({"id": f"i{number}", "label": value}).encode()
    return Outgoing("labels", number % partitions, f"i{number}".encode(), content, (), now)


def late_label(name: str, value: bool, now: int, partition: int, features: Any) -> Outgoing:
    """With its example's content; what it says was predicted is always false."""
    content = {"id": name, "label": value, "features": features, "prediction": False}
    return Outgoing("labels", partition, name.encode(), json.dumps(content).encode(), (), now)


class Hurried:
    """The loop's clock, on which nobody sleeps."""

    def __init__(self) -> None:
        self._skipped_s = 0.0
        self.time = time.time

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped_s

    def sleep(self, seconds: float) -> None:
        self._skipped_s += seconds


class Run:
    """One worker's run to the end of its input."""

    def __init__(
        self,
        log: Any,
        settings: Settings,
        *,
        stopping: Callable[[bool], bool] = lambda idle: idle,
        stepped: Callable[[WorkerState], None] | None = None,
        from_outcomes: bool = False,
        skip_to_oldest: bool = False,
        predict_missing: bool = False,
        slot: str = "slot",
    ) -> None:
        self.metrics = Metrics(["true", "false"], settings.learner.kind, "digest")
        self.heartbeat = Heartbeat()
        checkpoints = CheckpointSchedule(log, settings, slot, self.metrics)
        hooks = () if stepped is None else (after_commits(stepped),)
        observers = (self.metrics, self.heartbeat, ModelInsight(self.metrics), checkpoints)
        self.worker = Worker(
            log,
            settings,
            slot,
            observe=show_all(*(each.observe for each in observers), *hooks),
            checkpoints=checkpoints,
            stopping=stopping,
            accepted=Accepted(from_outcomes, skip_to_oldest, predict_missing),
            prefetch=prefetch_of(settings),
        )
        self.worker.run()

    @property
    def held(self) -> WorkerState:
        assert self.worker.held is not None
        return self.worker.held

    def metric(self, line: str) -> float:
        """The value of one sample of the metrics page; the label `prefix`, which all samples have alike, is left out."""
        page = re.sub(r'prefix="[^"]*",|,?prefix="[^"]*"', "", self.metrics.page()[0].decode()).replace(
            "{}", ""
        )
        return float(next(text for text in page.splitlines() if text.startswith(line)).rsplit(" ", 1)[1])


class Recount:
    """What the topics say, counted by nobody's memory. Raises AssertionError where they are inconsistent."""

    def __init__(self, log: Log, settings: Settings) -> None:
        self.predicted: list[tuple[str, Any]] = []
        self.tallies: list[Tallies] = []
        self.decisions: list[Any] = []
        for p in range(log.partitions):
            predictions = [read_prediction(record) for record in log.read("predictions", p, 0)]
            self._check_predictions(predictions)
            self.predicted += [(each.id, each.prediction) for each in predictions]
            outcomes = [read_outcomes(record) for record in log.read("outcomes", p, 0)]
            self._check_outcomes(predictions, outcomes)
            updates = [read_update(record) for record in log.read("updates", p, 0)]
            numbers = [each.n for each in updates if isinstance(each, Update)]
            assert numbers == list(range(1, len(numbers) + 1)), "updates are numbered without gaps"
            if self.tallies and outcomes:
                assert self.tallies[-1].epoch.updates == len(numbers)
        self.digest = fold_updates(log, settings, None).model.digest()

    def _check_predictions(self, predictions: list[Prediction]) -> None:
        sources = [each.source for each in predictions]
        assert sources == sorted(set(sources)), "every example is predicted once, in order"

    def _check_outcomes(self, predictions: list[Prediction], outcomes: list[Outcomes]) -> None:
        if not outcomes:
            return
        decisions = [decision for each in outcomes for decision in each.decisions]
        self.decisions += decisions
        ended = [each.source for each in decisions if each.outcome in ("applied", "expired", "evicted")]
        ended = [source for source in ended if source is not None]
        assert len(ended) == len(set(ended)), "no example ends twice"
        assert set(ended) <= {each.source for each in predictions}
        labels = [e.label_offset for e in decisions if e.label_offset is not None and e.outcome != "parked"]
        assert len(labels) == len(set(labels)), "no label ends twice"
        tallies = outcomes[-1].tallies
        assert tallies is not None
        self.tallies.append(tallies)
        counted = tallies.life
        assert counted.examples["labelled"] == sum(each.outcome == "applied" for each in decisions)
        judged = [each for each in decisions if each.outcome in ("applied", "applied_late")]
        wrong = sum(each.label != each.prediction for each in judged)
        assert counted.mistakes == wrong
        consumed = dict(counted.labels)
        assert consumed.pop("consumed") == sum(consumed.values()) + self._still_parked(decisions)

    def _still_parked(self, decisions: list[Any]) -> int:
        parked = {each.label_offset for each in decisions if each.outcome == "parked"}
        return len(parked - {each.label_offset for each in decisions if each.outcome != "parked"})

    @property
    def whole(self) -> Any:
        """All that must be equal after any faults."""
        return self.predicted, self.tallies, self.digest


def rejected(folder: Path) -> list[str]:
    """Checkpoints that were set aside."""
    return sorted(path.name for path in folder.glob("*.rejected"))


def written(folder: Path) -> list[Path]:
    """Checkpoints in use, oldest first."""
    return sorted(folder.glob("*.checkpoint"))
