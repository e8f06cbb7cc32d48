"""Whether a broker offers what every step needs: transactions that hold records and a group's positions.

What calls itself a broker of Kafka's protocol need not: some leave transactions out, or have them in one tier or under one
setting. A worker would learn that only when it starts.
"""

from collections.abc import Collection

NEEDED = {
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
}
"""Requests of the protocol by their keys."""
WITHOUT = (
    "without transactions no worker can run: take a broker, a tier or a setting that has them, see `Managed brokers` in "
    "deploy/security.md"
)


def lacking(offered: Collection[int]) -> str | None:
    """What a broker that offers these requests does not know; None where nothing is missing."""
    missing = [name for key, name in NEEDED.items() if key not in offered]
    if not missing:
        return None
    return f"the broker offers no transactions (it does not know {', '.join(missing)}); {WITHOUT}"


def failed(error: Exception) -> str:
    """It knows the requests, and yet none could be begun."""
    return f"the broker begins no transaction: {error}; {WITHOUT}"
