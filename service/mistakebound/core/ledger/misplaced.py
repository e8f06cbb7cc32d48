"""Parked labels whose example waits in another partition: they would meet if one producer placed them otherwise."""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from mistakebound.core.ledger.entries import Parked
from mistakebound.core.ledger.ledger import Ledger

LOOKED_AT = 1_000
"""Parked labels of a partition, spread over all that it has."""


class Apart(NamedTuple):
    """A parked label, its partition, and the one where its example waits."""

    label: Parked
    partition: int
    example_partition: int


def misplaced(ledgers: Mapping[int, Ledger]) -> list[Apart]:
    """Of a sample of the parked labels, those whose example waits in another of these partitions.

    A label that is only early, or has no example at all, is none of them.
    """
    if len(ledgers) < 2:
        return []
    found = []
    for partition, ledger in ledgers.items():
        step = max(1, len(ledger.parked) // LOOKED_AT)
        for label in islice(ledger.parked.values(), 0, None, step):
            for other, theirs in ledgers.items():
                if other != partition and label.id in theirs.waiting:
                    found.append(Apart(label, partition, other))
                    break
    return found
