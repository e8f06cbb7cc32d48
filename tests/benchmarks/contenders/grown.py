"""The core alone, after many known features, waiting examples or updates. For `growth`.

    python -m tests.benchmarks.contenders.grown JSON

JSON: `kind` (`features`, `features, skewed`, `waiting`, `updates`), `size`, `learner`. Once it holds that much it prints its
resident bytes and the mean bytes of an example's record. Then, for each line read, it takes a chunk of
examples and as many labels, one of ten of them a mistake, and prints CPU us a labelled example; and, as a
floor, those of w.x for such an example with the weights in a plain dict, of which each takes two.
"""

import json
import os
import random
import sys
import time
from collections.abc import Collection, Iterator
from itertools import islice

from mistakebound.core.records import INPUTS, Record, Topic
from mistakebound.core.replay.replay import EVERYTHING, fresh
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.settings import Settings
from tests.benchmarks.memory import resident_bytes

PARTITIONS = 4
FEATURES = 10
CHUNK = 4_000
MISTAKEN = 0.1
LEARNED = 100.0
"""Scale of what was learned before: a chunk's updates change little, and mistakes stay what they are."""


class Grown:
    """A worker's state and buffers, and the stream that it works off."""

    def __init__(self, learner: str, known: int, *, skewed: bool = False) -> None:
        """`known`: features that the examples draw from, each alike; skewed: each by 1/its rank, as words are."""
        self._settings = Settings.model_validate(
            {"learner": {"kind": learner}, "labels": {"max_waiting": 10_000_000, "max_delay": "P30D"}}
        )
        self._state = fresh(self._settings, PARTITIONS)
        self._merge = Merge(range(PARTITIONS), EVERYTHING, EVERYTHING)
        self._sides = {(topic, p) for topic in INPUTS for p in range(PARTITIONS)}
        self._chance = random.Random(7)
        self._names, self._skewed = known, skewed
        self._made = self._labelled = 0
        self.bytes = 0
        """Of all examples' records so far."""

    def learn(self, updates: int) -> None:
        """Fold so many updates, which go round the features."""
        model = self._state.model
        for number in range(updates):
            if number % CHUNK == 0:
                model.begin()
            first = number * FEATURES
            x = tuple(
                (_name(n % self._names), self._chance.gauss(0, LEARNED))
                for n in range(first, first + FEATURES)
            )
            partition, label = number % PARTITIONS, bool(number % 2)
            model.labelled(partition)
            model.learn(partition, x, label, not label)
        model.begin()

    def predict(self, examples: int) -> float:
        """CPU seconds that so many new examples take; they wait."""
        spent, made = 0.0, self._examples(examples)
        while chunk := list(islice(made, CHUNK)):
            spent += self._work(chunk)
        return spent

    def label(self, labels: int) -> float:
        """CPU seconds that labels of the oldest waiting examples take."""
        return self._work(list(self._labels(labels)))

    def bare(self, examples: int) -> float:
        """CPU seconds of their w.x in a plain loop over a plain dict."""
        weights, made = self._state.model.learner.theta(), 0.0
        drawn = [[(_name(number), 1.0) for number in self._drawn()] for _ in range(examples)]
        began = time.process_time()
        for x in drawn:
            for name, value in x:
                made += weights.get(name, 0.0) * value
        return time.process_time() - began

    @property
    def updates(self) -> int:
        """Folded so far."""
        return sum(self._state.model.updates)

    def _work(self, records: list[Record]) -> float:
        began = time.process_time()
        self._merge.add(records)
        while step(self._state, self._merge, self._sides, CHUNK) is not None:
            pass
        return time.process_time() - began

    def _examples(self, count: int) -> Iterator[Record]:
        for _ in range(count):
            named = {_name(number): round(self._chance.gauss(0, 1), 3) for number in self._drawn()}
            record_id = f"example-{self._made}"
            value = json.dumps({"id": record_id, "features": named}).encode()
            yield self._record("examples", self._made, record_id, value)
            self.bytes += len(value)
            self._made += 1

    def _drawn(self) -> Collection[int]:
        if not self._skewed:
            return self._chance.sample(range(self._names), FEATURES)
        drawn: dict[int, None] = {}
        while len(drawn) < FEATURES:
            drawn[int(self._names ** self._chance.random()) - 1] = None
        return drawn

    def _labels(self, count: int) -> Iterator[Record]:
        for _ in range(count):
            record_id = f"example-{self._labelled}"
            waiting = self._state.ledgers[self._labelled % PARTITIONS].waiting[record_id]
            label = waiting.predicted is not (self._chance.random() < MISTAKEN)
            value = b'{"id":"%s","label":%s}' % (record_id.encode(), b"true" if label else b"false")
            yield self._record("labels", self._labelled, record_id, value)
            self._labelled += 1

    def _record(self, topic: Topic, number: int, record_id: str, value: bytes) -> Record:
        partition, offset = number % PARTITIONS, number // PARTITIONS
        return Record(topic, partition, offset, self._made, record_id.encode(), value)


def _name(number: int) -> str:
    return f"feature_{number:07}"


def main(kind: str, size: int, learner: str) -> None:
    known = size if kind in ("features", "features, skewed") else FEATURES
    grown = Grown(learner, known, skewed=kind == "features, skewed")
    match kind:
        case "features" | "features, skewed":
            grown.learn(size // FEATURES)
        case "updates":
            grown.learn(size)
        case _:
            grown.learn(PARTITIONS * FEATURES)
            grown.predict(size)
    examples = size if kind == "waiting" else 1
    print(json.dumps({"resident": resident_bytes(os.getpid()), "record": grown.bytes / examples}), flush=True)
    for _ in sys.stdin:
        before = grown.updates
        spent = grown.predict(CHUNK) + grown.label(CHUNK)
        updates = (grown.updates - before) / CHUNK
        bare = grown.bare(CHUNK)
        answer = {"us": spent / CHUNK * 1e6, "bare_us": bare / CHUNK * 1e6, "updates": updates}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
