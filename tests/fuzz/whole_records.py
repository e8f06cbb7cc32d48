"""Batches of whole records, as anybody may write them: any headers, keys, times and values, in any codec."""

from collections import Counter
from collections.abc import Iterator
from random import Random

from mistakebound.core.records import Headers, Outgoing
from mistakebound.log.partitioner import partition_of
from tests.faults.support.stream import SPACING_MS, stream
from tests.log.support.upstream import Raw

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
WILD_TIMES = (-1, -2, -(2**63), -(2**62), 0, 1, 2**53 + 1, 2**62, 2**63 - 1)
NAMES: tuple[str, ...] = (
    "",
    "trace",
    "trace",
    "mistakebound.reason",
    "é\U0001f600",
    "x" * 300,
    Raw(b"caf\xe9"),
    Raw(b"\xff\xfe\0"),
    Raw(b"\xed\xa0\x80"),
)
CONTENTS: tuple[bytes | None, ...] = (None, b"", b"1", b"\xff\xfe", b"{}", b"x" * 2_000)
KEYS: tuple[bytes | None, ...] = (None, b"", b"\xff", b"k" * 5_000)
PIECE = 400
"""Examples of one story, whose labels come among and after them."""


class Records:
    """An endless stream in which about every third record is odd. The last partition has wild times."""

    def __init__(self, chance: Random, partitions: int) -> None:
        self._chance, self._partitions = chance, partitions
        self._rest = self._stories()
        self.kinds: Counter[str] = Counter()
        """What was made odd, and how often."""

    def take(self, most: int) -> list[Outgoing]:
        """The next records, at least one."""
        return [next(self._rest) for _ in range(self._chance.randint(1, most))]

    def _stories(self) -> Iterator[Outgoing]:
        number = 0
        while True:
            number += 1
            for record in stream(PIECE, self._chance.randrange(2**32)):
                yield self._odd(_renamed(record, number))

    def _odd(self, record: Outgoing) -> Outgoing:
        chance = self._chance
        partition = partition_of(record.key or b"", self._partitions)
        record = record._replace(partition=partition)
        if chance.random() < 0.2:
            record = record._replace(headers=self._headers())
        if chance.random() < 0.02:
            self.kinds["no value"] += 1
            record = record._replace(value=chance.choice((None, b"", b"\0", b"\xff")))
        if chance.random() < 0.05:
            self.kinds["another key"] += 1
            record = record._replace(key=chance.choice(KEYS))
        if partition == self._partitions - 1 and chance.random() < 0.02:
            self.kinds["a wild time"] += 1
            record = record._replace(timestamp_ms=chance.choice(WILD_TIMES))
        if chance.random() < 0.002:
            self.kinds["half a megabyte"] += 1
            record = record._replace(headers=(*record.headers, ("large", bytes(500_000))))
        return record

    def _headers(self) -> Headers:
        chance = self._chance
        count = chance.choice((1, 1, 2, 5, 40))
        headers = tuple((chance.choice(NAMES), chance.choice(CONTENTS)) for _ in range(count))
        odd = any(type(name) is Raw for name, _ in headers)
        self.kinds["a name that is not UTF-8" if odd else "headers"] += 1
        return headers


def _renamed(record: Outgoing, story: int) -> Outgoing:
    """Of another story its ids are others, in key and value alike, and its times follow those of the one before."""
    mark = b"s%d-" % story
    value = record.value
    if value is not None and record.key is not None:
        value = value.replace(b'"id": "' + record.key, b'"id": "' + mark + record.key)
    return record._replace(
        key=None if record.key is None else mark + record.key,
        value=value,
        timestamp_ms=(record.timestamp_ms or 0) + (story - 1) * PIECE * SPACING_MS,
    )
