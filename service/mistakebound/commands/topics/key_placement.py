"""Do an example and its label share a partition? Judged from samples of both topics. Pure.

Java clients and this worker place a key by murmur2; librdkafka, and what is built on it, by CRC32 unless told
otherwise. Any rule will do, but both inputs must use the same one.
"""

from collections.abc import Sequence
from typing import Literal

from mistakebound.commands.json_forms import TopicFinding
from mistakebound.core.records import Record
from mistakebound.log.placement import meeting, placement

RULE = "keys"
_WANTED = "both inputs alike"
_REMEDY = (
    "let all producers use one partitioner, such as partitioner=murmur2_random in librdkafka and what is built on it, "
    "and give an example and its label the same bytes as key; to repair what is there: deploy/late-labels.md"
)
_UNKEYED = "give every record its id as key, so that an example and its label share a partition"


def finding(
    examples: Sequence[Record],
    labels: Sequence[Record],
    partitions: int,
    pointer: str = "/id",
    misplaced: Literal["refuse", "warn"] = "refuse",
) -> TopicFinding:
    """Whether ids are placed together. Failed where ids prove that they are not; rules alone are only a hint.

    `misplaced` is what `run` would do then: `warn` makes it a warning.
    """
    if partitions == 1:
        return TopicFinding("labels", RULE, "one partition", _WANTED, "ok")
    sampled = [placement(records, partitions, pointer) for records in (examples, labels)]
    text = f"examples {sampled[0]}, labels {sampled[1]}"
    met = meeting(examples, labels, pointer)
    if met.misplaced:
        proven = met.proven and misplaced == "refuse"
        return TopicFinding(
            "labels", RULE, f"{text}; {met}", _WANTED, "failed" if proven else "warning", _REMEDY
        )
    told = [each for each in sampled if each.records]
    placed_by_id = all(each.rule is not None and each.rule.hashed == "id" for each in told)
    if not all(each.keyed for each in told) and not placed_by_id:
        return TopicFinding("labels", RULE, text, _WANTED, "warning", _UNKEYED)
    # A small sample may fit several rules: only what none of the other's rules explains is different.
    fitting = [{each.rule, *each.also} for each in told]
    if any(each.rule is None for each in told) or (fitting and not set.intersection(*fitting)):
        return TopicFinding("labels", RULE, text, _WANTED, "warning", _REMEDY)
    return TopicFinding("labels", RULE, text, _WANTED, "ok")
