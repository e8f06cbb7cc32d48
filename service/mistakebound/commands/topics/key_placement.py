"""Do an example and its label share a partition? Judged from a sample of keys. Pure.

Java clients and this worker place a key by murmur2; librdkafka, and what is built on it, by CRC32 unless told
otherwise. Either will do, but both inputs must use the same one.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mistakebound.commands.topics.rules import TopicFinding
from mistakebound.core.records import Record
from mistakebound.log.partitioner import partition_of

RULE = "keys"
_REMEDY = (
    "let all producers use one partitioner: partitioner=murmur2_random in librdkafka and what is built on it"
)

Placement = Literal["murmur2", "CRC32", "neither", "unkeyed", "empty"]


@dataclass(frozen=True, slots=True)
class Sample:
    """How one topic's sampled keys are placed."""

    placement: Placement
    records: int
    share: float
    """Share of the sample that the placement explains."""

    def __str__(self) -> str:
        return f"{self.placement} ({self.share:.0%} of {self.records})" if self.records else "no records yet"


def placement(records: Sequence[Record], partitions: int) -> Sample:
    """The rule that explains the most keys; "neither" where that is fewer than 99 of 100."""
    keyed = [record for record in records if record.key is not None]
    if not records:
        return Sample("empty", 0, 0.0)
    if len(keyed) * 100 < len(records) * 99:
        return Sample("unkeyed", len(records), 1 - len(keyed) / len(records))
    murmur2 = sum(partition_of(record.key, partitions) == record.partition for record in keyed)
    crc32 = sum(zlib.crc32(record.key or b"") % partitions == record.partition for record in keyed)
    best, name = max((murmur2, "murmur2"), (crc32, "CRC32"), key=lambda pair: pair[0])
    share = best / len(keyed)
    return Sample("neither" if share < 0.99 else name, len(records), share)  # type: ignore[arg-type]


def finding(examples: Sequence[Record], labels: Sequence[Record], partitions: int) -> TopicFinding:
    """Whether equal keys are placed together; a warning at most, since a sample proves nothing."""
    wanted = "both inputs alike"
    if partitions == 1:
        return TopicFinding("labels", RULE, "one partition", wanted, "ok")
    sampled = placement(examples, partitions), placement(labels, partitions)
    text = f"examples {sampled[0]}, labels {sampled[1]}"
    homes: dict[bytes | None, int] = {record.key: record.partition for record in examples if record.key}
    split = len({one.key for one in labels if homes.get(one.key, one.partition) != one.partition})
    if split:
        text += f"; {split} keys in two partitions"
        return TopicFinding("labels", RULE, text, wanted, "warning", _REMEDY)
    kinds = {one.placement for one in sampled} - {"empty"}
    if "unkeyed" in kinds:
        remedy = "give every record its id as key, so that an example and its label share a partition"
        return TopicFinding("labels", RULE, text, wanted, "warning", remedy)
    if "neither" in kinds or len(kinds) > 1:
        return TopicFinding("labels", RULE, text, wanted, "warning", _REMEDY)
    return TopicFinding("labels", RULE, text, wanted, "ok")
