"""Errors, by whose fault they are. A peer's bad data is written down; it never stops the worker."""


class BadRecord(Exception):
    """A peer's record that is not what it should be: it becomes a dead letter, and the stream goes on.

    `reason` is one of `REASONS` (a metric label); `detail` names the field, the value and the remedy.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


REASONS = (
    "tombstone",
    "schema-framing",
    "not-framed",
    "unknown-schema",
    "bad-schema",
    "schema-mismatch",
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
    "bad-header",
    "missing-tenant",
    "bad-tenant",
    "not-boolean",
    "unknown-variable",
    "deleted",
    "damaged",
)
"""Every reason for which a record can be refused."""


class MissingLibrary(Exception):
    """What the records are written in needs a library that is not installed; the text names it, and the extra."""


class BadLog(Exception):
    """The worker's own topics hold something that it never writes, or a format that it does not know.

    Readers stop rather than skip it: skipping an update would give a different model.
    """


class BadSnapshot(Exception):
    """A checkpoint's content is unreadable, or does not belong to this log."""
