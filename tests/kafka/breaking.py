"""Ways to break the client's transactions from inside, as a bad network or broker would from outside."""

from typing import Any


def expire(producer: Any) -> None:
    """Let the unsent batches be older than `delivery_timeout_ms`, by the client's own reckoning."""
    for batches in producer._accumulator._batches.values():
        for batch in batches:
            batch.created -= 1_000
    producer._sender.wakeup()


def lose_a_sequence_number(producer: Any) -> None:
    """Let the broker see a gap, as after an answer that was lost: it refuses the batch and all later ones."""
    for place in producer._transaction_manager._sequence_numbers:
        producer._transaction_manager.increment_sequence_number(place, 5)
