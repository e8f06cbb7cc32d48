"""A stream as bad as real ones: labels late, early, doubled, contradicting, lost, unreadable and wrong."""

import json
import random

from mistakebound.core.records import Outgoing, Topic

SPACING_MS = 10
"""Record time between two examples."""
BEGUN_MS = 1_750_000_000_000
SKEW_MS = 150
"""How far producers' clocks are apart."""
NAMES = [f"x{number}" for number in range(12)]
COLOURS = ["red", "green", "blue"]
WRONG = 0.15
"""Share of labels that contradict the rule behind the stream: they keep mistakes coming for ever."""


def stream(examples: int, seed: int) -> list[Outgoing]:
    """`examples` distinct ids and about as many labels, in record-time order, keyed by id."""
    chance = random.Random(seed)
    rule = {name: chance.gauss(0, 1) for name in NAMES}
    timed: list[tuple[float, Outgoing]] = []

    def add(at: float, topic: Topic, key: str, value: bytes | None) -> None:
        time_ms = BEGUN_MS + max(0, round(at * SPACING_MS) + chance.randint(-SKEW_MS, SKEW_MS))
        timed.append((at, Outgoing(topic, -1, key.encode(), value, (), time_ms)))

    def label(at: float, record_id: str, value: object) -> None:
        add(at, "labels", record_id, json.dumps({"id": record_id, "label": value}).encode())

    for number in range(examples):
        record_id = f"case-{number}"
        x = {name: round(chance.gauss(0, 1), 3) for name in NAMES}
        body = {**x, "colour": chance.choice(COLOURS), "seen": chance.random() < 0.5}
        value = json.dumps({"id": record_id, "features": body}).encode()
        add(number, "examples", record_id, value)
        if chance.random() < 0.01:
            add(number + chance.uniform(0, 500), "examples", record_id, value)
        truth = (sum(rule[name] * x[name] for name in NAMES) > 0) != (chance.random() < WRONG)
        delay = _delay(chance)
        if delay is not None:
            label(number + delay, record_id, truth)
            if chance.random() < 0.02:
                label(number + delay + chance.uniform(0, 300), record_id, truth)
            if chance.random() < 0.02:
                label(number + delay + chance.uniform(0, 300), record_id, not truth)
        if chance.random() < 0.01:
            label(number, f"stranger-{number}", truth)
        if chance.random() < 0.005:
            topic: Topic = chance.choice(["examples", "labels"])
            add(number, topic, f"bad-{number}", chance.choice(BAD[topic]))
    timed.sort(key=lambda each: each[0])
    return [record for _, record in timed]


def _delay(chance: random.Random) -> float | None:
    """In examples; None: the label never comes."""
    kind = chance.random()
    if kind < 0.80:
        return chance.uniform(1, 50)
    if kind < 0.92:
        return chance.uniform(50, 1_500)
    if kind < 0.94:
        return chance.uniform(2_500, 3_500)  # longer than an example waits
    if kind < 0.97:
        return -chance.uniform(1, 100)
    return None


SETTINGS = ("labels.max_delay=20", "labels.parking=10", "labels.max_waiting=60")
"""Of 2,000 and 1,000 examples; some examples wait too long, and at times too many wait."""

BAD: dict[Topic, list[bytes | None]] = {
    "examples": [
        None,
        b"{",
        b'{"features": {"x0": NaN}}',
        b'{"features": {"x0": [1]}}',
        b'{"id": "no features"}',
        b"\0framed",
        b'{"id": 1.5, "features": {"x0": 1}}',
    ],
    "labels": [None, b"[]", b'{"label": "perhaps"}', b'{"label": null}', b'{"id": "", "label": true}'],
}
