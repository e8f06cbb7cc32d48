"""Ways to break the client's transactions from inside, and its membership, as a bad network or broker would."""

from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from mistakebound.log.kafka import KafkaLog


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


def evict(log: KafkaLog) -> None:
    """Remove every member, as the broker does with one that it has not heard of for long."""
    admin = KafkaAdminClient(bootstrap_servers=log._cluster.connection.servers)
    try:
        members = admin.describe_groups([log._cluster.connection.group])[log._cluster.connection.group][
            "members"
        ]
        admin.remove_group_members(
            log._cluster.connection.group, [MemberToRemove(member["member_id"]) for member in members]
        )
    finally:
        admin.close()
