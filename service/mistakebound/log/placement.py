"""Where a stream's producers put records, told from a sample of them; and ids whose label lies elsewhere than their example.

1. A rule is found only where it explains 99 of 100 sampled keys; of several that do, the likeliest counts.
2. Labels meet examples by id, so what is misplaced is told by ids, never by keys or rules: an id counts only if its
   example and its label were both seen, and no label of it where its example is.
3. Sampling reads a bounded number of records and never waits long for a transaction that is open.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from mistakebound.core.messages.inputs import resolve
from mistakebound.core.records import Record, Topic
from mistakebound.log.newest import newest_records
from mistakebound.log.partitioner import PARTITIONERS, Partitioner
from mistakebound.log.protocol import Log, OffsetLost

SAMPLE_RECORDS = 1_000
"""Of each topic."""
MOST_PARTITIONS = 32
"""So many are sampled, of both topics the same ones."""
ENOUGH = 5
"""Ids that prove that labels are misplaced. Fewer may be a slip, and are said but stop nothing."""
SHARE = 0.01
"""And the least share of them among the ids of which both were seen."""

_EXPLAINED = 0.99
_decode = msgspec.json.Decoder().decode

Hashed = Literal["key", "id"]
"""What a producer's partitioner is given."""
KeyForm = Literal["text", "json", "int64", "int32"]
"""How a key spells its record's id: as it is, as JSON, or as a number of 8 or 4 bytes, the highest first."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which partition a record belongs to."""

    partitioner: Partitioner
    hashed: Hashed = "key"

    def place(self, key: bytes | None, record_id: str | None, partitions: int) -> int:
        """The partition; -1 where the rule cannot tell."""
        found = key if self.hashed == "key" else None if record_id is None else record_id.encode()
        return PARTITIONERS[self.partitioner](found, partitions) if found else -1

    def __str__(self) -> str:
        name = "CRC32" if self.partitioner == "crc32" else self.partitioner
        return name if self.hashed == "key" else f"{name} of the id"


@dataclass(frozen=True, slots=True)
class Placement:
    """How one topic's sampled records are placed."""

    records: int
    rule: Rule | None
    """None: by none that is known, or there is nothing to tell it from."""
    share: float
    """Share of the sample that the rule explains; without one, of the best that was tried."""
    also: tuple[Rule, ...]
    """Other rules that explain the sample as well: it was small."""
    keyed: bool
    key_form: KeyForm | None
    """How keys spell ids; None: not at all, or not in one way."""

    def __str__(self) -> str:
        if not self.records:
            return "no records yet"
        name = str(self.rule) if self.rule is not None else "neither" if self.keyed else "unkeyed"
        return f"{name} ({self.share:.0%} of {self.records})"


def id_of(record: Record, pointer: str) -> str | None:
    """The id by which the worker joins the record; None where it has none that can be read."""
    found: object = None
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        found = resolve(_decode(record.value or b""), pointer)
        if found is None and record.key is not None:
            found = record.key.decode()
    return str(found) if type(found) in (int, str) and found != "" else None


def key_for(record_id: str, form: KeyForm) -> bytes | None:
    """The key that spells this id; None where the form cannot."""
    if form == "text":
        return record_id.encode()
    if form == "json":
        return msgspec.json.encode(record_id)
    with suppress(ValueError, struct.error):
        return struct.pack(">q" if form == "int64" else ">i", int(record_id))
    return None


def placement(records: Sequence[Record], partitions: int, pointer: str = "/id") -> Placement:
    """What the sample tells. An empty key counts as none: librdkafka's default places it at random.

    Records without an id belong nowhere, and tell nothing beside others.
    """
    read = [(record.key, id_of(record, pointer), record.partition) for record in records]
    joined = [each for each in read if each[1] is not None] or read
    seen = set(joined)
    keyed = [each for each in seen if each[0]]
    is_keyed = len(keyed) >= len(seen) * _EXPLAINED
    rules = [Rule(name) for name in PARTITIONERS] if is_keyed else []
    if not is_keyed or any(key != (found or "").encode() for key, found, _ in seen):
        rules += [Rule(name, "id") for name in PARTITIONERS]
    shares = {
        rule: _share(rule.place(key, found, partitions) == place for key, found, place in seen)
        for rule in rules
    }
    fitting = [rule for rule in rules if shares[rule] >= _EXPLAINED]
    forms: tuple[KeyForm, ...] = ("text", "json", "int64", "int32")
    spelled = [
        form
        for form in forms
        if _share(found is not None and key == key_for(found, form) for key, found, _ in keyed) >= _EXPLAINED
    ]
    return Placement(
        len(joined),
        fitting[0] if fitting else None,
        max(shares.values(), default=0.0) if is_keyed or fitting else 1 - len(keyed) / max(1, len(seen)),
        tuple(fitting[1:]),
        is_keyed and bool(seen),
        spelled[0] if spelled else None,
    )


def _share(answers: Iterable[bool]) -> float:
    found = list(answers)
    return sum(found) / len(found) if found else 0.0


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An id whose label lies where its example is not."""

    id: str
    example: Record
    label: Record

    def __str__(self) -> str:
        return f"an example is at {self.example.location}, its label at {self.label.location}"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Of the ids of which example and label were both seen: how many cannot meet."""

    both: int
    misplaced: tuple[Misplaced, ...]

    @property
    def proven(self) -> bool:
        """Whether this is no slip."""
        return len(self.misplaced) >= max(ENOUGH, self.both * SHARE)

    def __str__(self) -> str:
        return f"{len(self.misplaced)} of {self.both} sampled labels lie elsewhere than their examples" + (
            f": {self.misplaced[0]}" if self.misplaced else ""
        )


def meeting(examples: Iterable[Record], labels: Iterable[Record], pointer: str = "/id") -> Meeting:
    """Which sampled labels lie where their example is not. An id that was seen once in its example's partition is well."""
    homes = _by_id(examples, pointer)
    both, misplaced = 0, []
    for record_id, found in _by_id(labels, pointer).items():
        if record_id in homes:
            both += 1
            if not found.keys() & homes[record_id].keys():
                example = next(iter(homes[record_id].values()))
                misplaced.append(Misplaced(record_id, example, next(iter(found.values()))))
    return Meeting(both, tuple(misplaced))


def homes(examples: Iterable[Record], pointer: str) -> dict[str, int]:
    """The partition of each example's id, for ids that were seen in one partition only."""
    return {
        record_id: next(iter(found))
        for record_id, found in _by_id(examples, pointer).items()
        if len(found) == 1
    }


def _by_id(records: Iterable[Record], pointer: str) -> Mapping[str, Mapping[int, Record]]:
    """The first record of an id in each partition."""
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        if (record_id := id_of(record, pointer)) is not None:
            found.setdefault(record_id, {}).setdefault(record.partition, record)
    return found


def sample(
    log: Log, topic: Topic, partitions: int, *, enough: Callable[[], bool] = lambda: False
) -> list[Record]:
    """About the newest 1,000 committed records of a topic, spread over its partitions.

    Ends early, with what it has, once `enough()` is true. Raises Refused where the topic may not be read.
    """
    asked = range(0, partitions, -(-partitions // MOST_PARTITIONS))
    share = -(-SAMPLE_RECORDS // len(asked))
    records: list[Record] = []
    for partition in asked:
        if enough():
            break
        with suppress(OffsetLost):  # where retention has just taken them
            records += newest_records(log, topic, partition, share)
    return records
