"""What becomes of a label, and what every recorded decision does to a ledger: two tables, each read in one module.

1. `OUTCOMES`: (what is known of the label's id) x (whether the label brings content of its own) -> outcome. The
   partition step decides by it, once, and writes the decision down.
2. `OF_EXAMPLES`, `OF_LABELS`: recorded outcome -> what it does to the three maps. A rebuild applies these, and
   decides nothing.

The audit reads neither: its `reference_ledger` states the same rules a second time, on purpose, so that an
error here shows as a difference there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from mistakebound.core.messages.schema import Decision

Known = Literal["waiting", "given up", "same label", "other label", "unknown", "never came"]
"""What is known of a label's id. `given up`: its example expired or was evicted; `same label`, `other label`: an earlier
label was applied or is parked; `never came`: the label itself was parked, and may wait no longer for its example."""

LabelDecision = Literal["applied", "applied_late", "duplicate", "conflict", "expired", "unmatched", "parked"]

OUTCOMES: Mapping[Known, tuple[LabelDecision, LabelDecision]] = {
    # what is known    the label alone   with features and prediction
    "waiting":         ("applied",       "applied"),
    "given up":        ("expired",       "applied_late"),
    "same label":      ("duplicate",     "duplicate"),
    "other label":     ("conflict",      "conflict"),
    "unknown":         ("parked",        "parked"),
    "never came":      ("unmatched",     "applied_late"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """What a decision does to the ledger's three maps."""

    needs: Callable[[Decision], tuple[object, ...]] | None = None
    """Fields of the decision without which it cannot be applied."""
    ends_waiting: bool = False
    """The example leaves `waiting`."""
    parks: bool = False
    """The label enters `parked`."""
    unparks: bool = False
    """The label leaves `parked`, if it was there."""
    remembers: bool = False
    """The id enters `remembered`."""


OF_EXAMPLES: Mapping[str, Effect] = {  # decisions without a `label_offset`
    "expired": Effect(attrgetter("id", "source"), ends_waiting=True, remembers=True),
    "evicted": Effect(attrgetter("id", "source"), ends_waiting=True, remembers=True),
    "duplicate": Effect(),
    "invalid": Effect(),
}
OF_LABELS: Mapping[str, Effect] = {  # decisions with one
    "applied": Effect(attrgetter("id", "source"), ends_waiting=True, unparks=True, remembers=True),
    "applied_late": Effect(attrgetter("id", "label"), unparks=True, remembers=True),
    "parked": Effect(attrgetter("id", "label", "at"), parks=True),
    "unmatched": Effect(unparks=True),
    "duplicate": Effect(),
    "conflict": Effect(),
    "expired": Effect(),
    "invalid": Effect(),
}
