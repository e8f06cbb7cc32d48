"""Random complete streams that reach every outcome: few ids, skewed clocks, small limits, bad records."""

import json
from typing import Any

from hypothesis import strategies as st

from mistakebound.core.records import Record

IDS = [f"i{number}" for number in range(6)]
VALUES = [-2.0, -0.5, 0.1, 1.0, 3.0]

small_labels = st.fixed_dictionaries(
    {
        "max_delay": st.sampled_from([0.01, 0.05, 1000]),
        "parking": st.sampled_from([0, 0.01, 1000]),
        "max_parked": st.sampled_from([1, 2, 1000]),
        "max_waiting": st.sampled_from([1, 3, 1000]),
        "remember": st.sampled_from([1, 2, 1000]),
    }
)
learners = st.sampled_from(
    [
        {"kind": "perceptron"},
        {"kind": "perceptron", "delay_policy": "issued"},
        {"kind": "averaged-perceptron", "tie": "positive"},
        {"kind": "averaged-perceptron"},
        {"kind": "winnow", "threshold": 1.0},
        {"kind": "balanced-winnow", "delay_policy": "issued"},
    ]
)
sections = st.fixed_dictionaries({"labels": small_labels, "learner": learners})

_events = st.tuples(
    st.booleans(),
    st.sampled_from(IDS),
    st.sampled_from([0, 1, 1, 5, 30]),
    st.sampled_from([0, 0, 0, -20, 20]),
    st.sampled_from(VALUES),
    st.booleans(),
    st.integers(0, 20),
)


def complete(partitions: int = 1) -> st.SearchStrategy[list[Record]]:
    """All records of a stream, in the order in which they were sent."""
    return st.lists(st.tuples(st.integers(0, partitions - 1), _events), max_size=40).map(_records)


def _records(events: list[tuple[int, tuple[Any, ...]]]) -> list[Record]:
    records: list[Record] = []
    offsets: dict[tuple[str, int], int] = {}
    now = 0
    for partition, (is_label, record_id, passed, skew, value, label, dice) in events:
        now += passed
        content: dict[str, Any] = {"id": record_id}
        content |= {"label": label} if is_label else {"features": {"a": value, "b": 1, record_id: 1}}
        raw = b"{" if dice == 0 else json.dumps(content).encode()
        topic = "labels" if is_label else "examples"
        offset = offsets.get((topic, partition), 0)
        offsets[topic, partition] = offset + 1
        at = -1 if dice == 1 else max(0, now + skew)
        records.append(Record(topic, partition, offset, at, record_id.encode(), None if dice == 2 else raw))  # type: ignore[arg-type]
    return records
