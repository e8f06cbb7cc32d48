"""Whose fault it is. A peer's bad data is a value to write down, never a crash."""


class BadRecord(Exception):
    """A peer's record that is not what it should be: it becomes a dead letter, and the stream goes on.

    `reason` is one of a small set of words (a metric label); `detail` names the field, the value and
    the remedy.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


REASONS = (
    "tombstone",
    "schema-framing",
    "not-json",
    "not-an-object",
    "missing-id",
    "bad-id",
    "id-too-long",
    "missing-features",
    "bad-features",
    "missing-feature",
    "number-out-of-range",
    "zero-vector",
    "missing-label",
    "unknown-label",
    "bad-prediction",
    "oversize",
    "not-boolean",
    "unknown-variable",
)
"""Every reason a record can be refused for."""


class BadLog(Exception):
    """The worker's own topics hold something that it never writes, or of a format it does not know.

    Readers stop here rather than skip: a skipped update would be a different model.
    """


class BadSnapshot(Exception):
    """A checkpoint's content is unreadable, or does not belong to this log."""
