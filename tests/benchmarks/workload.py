"""What every contender works on: labelled examples in two topics, the label some examples behind.

Contenders import this module in environments of their own, so it needs nothing but the standard library.
"""

import json
import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Workload:
    """One stream. The same fields give the same bytes."""

    records: int = 40_000
    """Labelled examples."""
    features: int = 10
    delay: int = 1_000
    """Examples predicted between an example and its label."""
    partitions: int = 4
    noise: float = 0.05
    """Share of labels drawn by chance from the other classes: it sets the share of mistakes."""
    classes: int = 2
    sparse: bool = False
    """Features are tokens of a vocabulary of `vocabulary`, each counting 1."""
    vocabulary: int = 10_000
    hash_bits: int = 0
    """Names are numbers below 2**hash_bits, as of a producer that hashes; 0: as they are."""
    margin: float = 0.0
    """With two classes: examples whose score is nearer to 0 are drawn again."""
    seed: int = 7


def labelled(work: Workload) -> Iterator[tuple[str, Any, Any]]:
    """(id, features, label) for each example: an object of names to numbers, or an array of tokens."""
    chance = random.Random(work.seed)
    width = work.vocabulary if work.sparse else work.features
    weights = [[chance.gauss(0, 1) for _ in range(width)] for _ in range(max(1, work.classes - 1))]
    classes = class_names(work)
    names = [_name(place, work.hash_bits) for place in range(width)]

    def drawn() -> tuple[Any, list[float]]:
        if work.sparse:
            places = chance.sample(range(width), work.features)
            features: Any = [names[place] for place in places]
            pairs = [(place, 1.0) for place in places]
        else:
            values = [round(chance.gauss(0, 1), 3) for _ in range(width)]
            features = dict(zip(names, values, strict=True))  # of hashed names that meet, the last stays
            pairs = list(enumerate(values))
        return features, [sum(row[place] * value for place, value in pairs) for row in weights]

    for number in range(work.records):
        features, scores = drawn()
        while abs(scores[0]) < work.margin:
            features, scores = drawn()
        if work.classes == 2:
            label: Any = scores[0] > 0
            if chance.random() < work.noise:
                label = not label
        else:
            best = max(range(len(scores)), key=scores.__getitem__)
            label = best + 1 if scores[best] > 0 else 0
            if chance.random() < work.noise:
                label = chance.randrange(work.classes)
            label = classes[label]
        yield f"example-{number:07d}", features, label


def class_names(work: Workload) -> list[str]:
    """The labels, where there are more than two."""
    return [f"class-{number}" for number in range(work.classes)]


def _name(place: int, hash_bits: int) -> str:
    name = f"feature_{place}"
    return str(zlib.crc32(name.encode()) % 2**hash_bits) if hash_bits else name


def stream(work: Workload) -> Iterator[tuple[str, int, int, bytes, bytes]]:
    """(topic, partition, ms since the stream's start, key, value), in order of time."""
    waiting: list[tuple[int, str, Any]] = []

    def label_of(number: int, record_id: str, label: Any, now: int) -> tuple[str, int, int, bytes, bytes]:
        value = json.dumps({"id": record_id, "label": label}).encode()
        return "labels", number % work.partitions, now, record_id.encode(), value

    now = 0
    first = 0
    for number, (record_id, features, label) in enumerate(labelled(work)):
        now += 1
        value = json.dumps({"id": record_id, "features": features}).encode()
        yield "examples", number % work.partitions, now, record_id.encode(), value
        waiting.append((number, record_id, label))
        if len(waiting) - first > work.delay:
            yield label_of(*waiting[first], now)
            first += 1
    for each in waiting[first:]:
        now += 1
        yield label_of(*each, now)


def span_ms(work: Workload) -> int:
    """How much record time the stream covers."""
    return work.records + work.delay + 1


def waiting_bytes(work: Workload) -> int:
    """Mean length of an example's value."""
    sizes = [len(value) for topic, _, _, _, value in stream(work) if topic == "examples"]
    return math.ceil(sum(sizes) / len(sizes))
