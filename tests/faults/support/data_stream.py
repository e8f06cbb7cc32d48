"""What is wrong with data, one case per id, for a worker on a real broker; and what came of each."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from mistakebound.core.messages.schema import read_outcomes, read_prediction
from mistakebound.core.records import TOPICS, Outgoing, Topic
from mistakebound.log.protocol import Log

YEAR_S = 365 * 24 * 3_600
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""A broker's own setting refuses records from the future, which would hide what the worker does."""
TOPIC_CONFIG: dict[Topic, dict[str, str]] = {
    topic: {"retention.ms": "-1", **ANY_TIME} if topic in ("examples", "labels") else {"retention.ms": "-1"}
    for topic in TOPICS
}
MAX_DELAY_S, PARKING_S = 60, 30
UNREADABLE = {
    "not UTF-8": b"\xff\xfe",
    "cut off": b'{"id": "cut off", "features"',
    "no object": b"[1]",
    "framed": b"\0\0\0\0\1{}",
    "a tombstone": None,
    "too deep": b'{"features": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "not finite": b'{"features": {"a": NaN}}',
    "too large": b'{"features": {"' + b"a" * 1_048_000 + b'": 1}}',
}
"""Values of examples. The last one fits its topic, and what it leads to would not."""
UNUSABLE = {"unknown value": b'{"label": "perhaps"}', "no label": b'{"id": "no label"}', "nothing": None}
"""Values of labels."""


@dataclass
class Sender:
    """Puts down records with times in s from the stream's beginning; all on partition 0, keyed by id."""

    begun_ms: int
    records: list[Outgoing] = field(default_factory=list)

    def example(self, at: float, record_id: str, value: bytes | None = None, *, raw: bool = False) -> None:
        body = value if raw else json.dumps({"features": {"a": 1, record_id: 1}}).encode()
        self._add("examples", at, record_id, body)

    def label(self, at: float, record_id: str, value: object) -> None:
        self._add("labels", at, record_id, json.dumps({"label": value}).encode())

    def unusable(self, at: float, record_id: str, value: bytes | None) -> None:
        self._add("labels", at, record_id, value)

    def _add(self, topic: Topic, at: float, record_id: str, value: bytes | None) -> None:
        time_ms = self.begun_ms + round(at * 1000)
        self.records.append(Outgoing(topic, 0, record_id.encode(), value, (), time_ms))


def batches(begun_ms: int) -> list[list[Outgoing]]:
    """What a producer sends, in three goes; each is worked off before the next."""
    usual, future, afterwards = (Sender(begun_ms) for _ in range(3))
    usual.example(0, "first")
    for name, value in UNREADABLE.items():
        usual.example(0, name, value, raw=True)
    for name, unusable in UNUSABLE.items():
        usual.unusable(1, name, unusable)
    usual.label(1, "first", True)
    usual.label(2, "first", True)
    usual.label(3, "first", False)
    usual.example(4, "twice")
    usual.example(5, "twice")
    usual.label(6, "twice", True)
    usual.label(6, "early", True)
    usual.label(6, "stranger", True)
    usual.example(7, "early")
    usual.example(8, "late")
    usual.example(8 + MAX_DELAY_S + 1, "in time")
    usual.label(8 + MAX_DELAY_S + 2, "late", True)
    usual.label(8 + MAX_DELAY_S + 2, "in time", True)
    usual.example(-YEAR_S, "a year behind")
    usual.label(-YEAR_S, "a year behind", True)
    usual.example(8 + MAX_DELAY_S + 3, "waits")
    future.example(YEAR_S, "a year ahead")
    future.label(YEAR_S, "a year ahead", True)
    afterwards.label(8 + MAX_DELAY_S + 4, "waits", True)
    afterwards.example(8 + MAX_DELAY_S + 4, "after")
    afterwards.label(8 + MAX_DELAY_S + 5, "after", True)
    return [each.records for each in (usual, future, afterwards)]


class Came:
    """What became of each id, as the topics say."""

    def __init__(self, log: Log) -> None:
        self.predicted = [read_prediction(record) for record in log.read("predictions", 0, 0)]
        self.outcomes = [read_outcomes(record) for record in log.read("outcomes", 0, 0)]
        self.dead = {(record.key or b"").decode(): record for record in log.read("dead-letters", 0, 0)}
        self._of: dict[str, list[str]] = defaultdict(list)
        for each in self.outcomes:
            for decision in each.decisions:
                side = "example" if decision.label_offset is None else "label"
                self._of[decision.id or ""].append(f"{side} {decision.outcome}")

    def of(self, record_id: str) -> list[str]:
        """Its decisions in order, `example duplicate` or `label applied`."""
        return self._of[record_id]

    def reason(self, record_id: str) -> str:
        """Why it is a dead letter."""
        headers: dict[str, Any] = dict(self.dead[record_id].headers)
        return bytes(headers["mistakebound.reason"]).decode()
