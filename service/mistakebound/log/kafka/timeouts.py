"""How long the parts of a transaction may take, and how long a member of the group may be silent.

Each limit of a transaction lets the one inside it come first: request < batch < flush, and batch < transaction. The
client gives a batch up before the broker would abort the transaction around it, and we wait for the client until it has.
"""

REQUEST_MS = 5_000
DELIVERY_MS = 8_000
"""From handing a record over until its batch is acknowledged or given up."""
TRANSACTION_MS = 10_000
"""The broker ends a silent producer's transaction after so long."""

FLUSH_S = DELIVERY_MS / 1000 + 2
OFFSETS_S = 10.0
COMMIT_S = 30.0
ABORT_S = 5.0
STUCK_S = 120.0
"""No transaction as a whole, and no start of a transactional client, takes longer: the watchdog's limit."""

SESSION_MS = 10_000
"""The group takes a member for dead after so long without a heartbeat, where the user does not say otherwise."""
