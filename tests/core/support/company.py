"""Several workers of one model without a log: each owns partitions, and follows the others' updates late."""

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import Update, read_update
from mistakebound.core.messages.tallies import Tally
from mistakebound.core.model.model import Model
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import EVERYTHING
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.state import State
from mistakebound.core.step.step import step
from mistakebound.core.theorems.claims import certificate, claims
from tests.core.support.worlds import World


class Company:
    """`workers` models over `partitions`; `lag` is how willingly one follows, 1: at once."""

    def __init__(self, world: World, partitions: int, workers: int, seed: int, lag: float = 0.2) -> None:
        self.settings, self.random, self.lag = world.settings, Random(seed), lag
        owned = [[p for p in range(partitions) if p % workers == w] for w in range(workers)]
        self.states = [
            State(
                self.settings,
                Model(self.settings, partitions),
                {p: Ledger(self.settings.labels) for p in of_one},
            )
            for of_one in owned
        ]
        self.merges = [Merge(of_one, capacity=EVERYTHING) for of_one in owned]
        self.updates: list[list[Update]] = [[] for _ in range(partitions)]
        self.partitions, self.workers = partitions, workers
        self.ends: Counter[tuple[str, int]] = Counter()
        self.now = 0

    def send(self, topic: Any, partition: int, value: dict[str, Any]) -> None:
        """One record to its owner, which steps at once."""
        self.now += 1
        offset = self.ends[topic, partition]
        self.ends[topic, partition] += 1
        record = Record(topic, partition, offset, self.now, None, json.dumps(value).encode())
        worker = partition % self.workers
        state, merge = self.states[worker], self.merges[worker]
        self._follow(worker)
        merge.add((record,))
        sides = {(side, p) for side in ("examples", "labels") for p in state.ledgers}
        done = step(state, merge, sides, EVERYTHING)
        assert done is not None
        for output in done.transaction.outputs:
            if output.topic == "updates":
                update = read_update(Record("updates", output.partition, 0, 0, output.key, output.value, ()))
                assert isinstance(update, Update)
                self.updates[output.partition].append(update)

    def _follow(self, worker: int) -> None:
        model = self.states[worker].model
        for p in range(self.partitions):
            while model.updates[p] < len(self.updates[p]) and self.random.random() < self.lag:
                model.follow(p, self.updates[p][model.updates[p]])

    def run(self, world: World, outstanding: int, after: Callable[[], None] | None = None) -> None:
        """Every row, its label up to `outstanding` predictions late, in any order, some before their example."""
        waiting: list[tuple[int, str, Any]] = []
        for number, (x, label) in enumerate(world.rows):
            partition, record_id = self.random.randrange(self.partitions), f"i{number}"
            early = self.random.random() < 0.05
            if early:
                self.send("labels", partition, {"id": record_id, "label": label})
            self.send("examples", partition, {"id": record_id, "features": x})
            if not early:
                waiting.append((partition, record_id, label))
            while len(waiting) > self.random.randint(0, outstanding):
                self._label(waiting)
                if after is not None:
                    after()
        while waiting:
            self._label(waiting)
            if after is not None:
                after()

    def _label(self, waiting: list[tuple[int, str, Any]]) -> None:
        partition, record_id, label = waiting.pop(self.random.randrange(len(waiting)))
        self.send("labels", partition, {"id": record_id, "label": label})

    def auditor(self) -> Model:
        """A reader that folds `updates` partition after partition, whole."""
        model = Model(self.settings, self.partitions)
        for p, log in enumerate(self.updates):
            for update in log:
                model.follow(p, update)
        return model

    def tallies(self) -> list[Tally]:
        """Of all partitions."""
        return [ledger.tallies.epoch for state in self.states for ledger in state.ledgers.values()]

    def judge(self, world: World) -> list[str]:
        """Check every bound that is claimed of this run; return what was counted."""
        model = self.auditor()
        said = claims(model, self.tallies())
        for bound in said:
            assert bound.holds, f"{bound} with {world.settings.learner}"
        for state in self.states:
            for bound in claims(state.model, [ledger.tallies.epoch for ledger in state.ledgers.values()]):
                assert bound.holds, f"a worker says {bound}"
        has_certificate = model.kind.norm is not None or model.kind.own_norm is not None
        if world.margin is not None and has_certificate and sum(model.updates):
            proved = certificate(model)
            assert proved is not None
            assert proved >= world.margin * (1 - 1e-9), (proved, world.margin)
        return [bound.of for bound in said]
