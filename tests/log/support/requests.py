"""Kafka's requests as they are on the wire: which one it is, and what a test must know of it."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Requests by their key on the wire: those of a transaction, and those of a worker that takes partitions over."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END = 26
    OFFSETS = 28


OF_TRANSACTIONS = (
    Kind.PRODUCE, Kind.INIT_PRODUCER_ID, Kind.ADD_PARTITIONS, Kind.ADD_OFFSETS, Kind.END, Kind.OFFSETS,
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One request as it came, its length before it."""

    frame: bytes

    @property
    def number(self) -> bytes:
        """By which its answer is known."""
        return self.frame[8:12]

    @property
    def key(self) -> int:
        """Which request of the protocol it is."""
        return int.from_bytes(self.frame[4:6], "big")

    def is_a(self, kind: Kind) -> bool:
        return self.key == kind.value

    @property
    def version(self) -> int:
        """Of the request's form."""
        return int.from_bytes(self.frame[6:8], "big")

    @property
    def commits(self) -> bool:
        """Of an END: whether it commits. The flag is the last byte, before the tagged fields of later versions."""
        return self.frame[-2 if self.version >= 3 else -1] == 1
