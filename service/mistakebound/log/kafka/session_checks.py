"""What a session checks, whichever client it uses: topics, assignments, and transactions before they are sent."""

from collections.abc import Collection, Mapping
from typing import Any

from mistakebound.core.records import Transaction
from mistakebound.log.protocol import Refused, StaleGeneration, TransactionFailed


def check_transaction(
    transaction: Transaction, generation: int, current: int, owned: Collection[int], most_metadata_bytes: int
) -> None:
    """Raise StaleGeneration for work of another generation or of a partition that is not owned.

    TransactionFailed for metadata that the broker would refuse: that would leave the client useless.
    """
    if generation != current:
        raise StaleGeneration(f"the transaction is of generation {generation}, now is {current}")
    if transaction.outputs and not transaction.positions:
        raise ValueError("a transaction with outputs needs positions: they are what fences it")
    for partition, position in transaction.positions.items():
        if partition not in owned:
            raise StaleGeneration(f"partition {partition} is not owned in generation {generation}")
        size = len(position.metadata.encode())
        if size > most_metadata_bytes:
            raise TransactionFailed(
                f"metadata of partition {partition} takes {size} bytes, a broker takes {most_metadata_bytes}; "
                "nothing was sent"
            )


def check_together(examples: Collection[int], labels: Collection[int]) -> None:
    """Raise Refused where the group's leader gave the two inputs of a partition to different members."""
    if set(examples) != set(labels):
        raise Refused(
            f"the group gave examples {sorted(examples)} and labels {sorted(labels)}: partitions "
            "must stay together; no other program may be in this group (`worker.group`)"
        )


def check_topics(
    counts: Mapping[str, int], partitions: int, ids: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Raise Refused where a topic got more partitions while the worker ran, or is not the one that it joined."""
    if any(count not in (0, partitions) for count in counts.values()):
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise Refused(
            f"the partition counts changed: {listed}, at start {partitions}; a count is fixed for "
            "the life of a prefix, take another prefix and replay"
        )
    remade = [name for name, count in counts.items() if count and ids[name] != known[name]]
    if remade:
        raise Refused(
            f"{', '.join(remade)} was made anew while this worker read it: its offsets now belong to "
            "other records; take another log.prefix"
        )
