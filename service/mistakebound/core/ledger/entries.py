"""What a ledger holds: examples that wait for their label, labels that came first, and ids that are decided."""

from typing import Any

from mistakebound.core.messages.beside import Beside
from mistakebound.core.messages.labels import Carried
from mistakebound.core.records import Data
from mistakebound.settings import LabelValue

Shared = Any
"""An integer shared by many entries. Declared as an int, compiled code would make a new object for each."""


class Waiting(Data, frozen=True, gc=False, omit_defaults=True):
    """A predicted example without a label."""

    id: str
    source: int
    """The example's offset."""
    at: int
    """Stream time in ms when predicted."""
    predicted: LabelValue | None
    """Class published; None where none was known yet."""
    epoch: int
    features: bytes
    predictions_floor: int
    """At or below the offset of its prediction record."""
    outcomes_floor: int
    """At or below the `outcomes` offset of the transaction that predicted it."""
    updates: int = 0
    """How many updates the predicting model had folded."""
    beside: Beside | None = None
    tenant: str | None = None
    """Whose example it is; None where `features.cross` was not set."""


class Published(Data, frozen=True, gc=False):
    """A prediction that is in the log although no outcomes count its example: its transaction was torn."""

    at: int
    predicted: LabelValue | None
    epoch: int
    updates: int
    floor: int
    """At or below the offset of the first such prediction."""
    beside: Beside | None = None


class Parked(Data, frozen=True, gc=False):
    """A label whose example has not come yet."""

    id: str
    offset: int
    """The label's offset."""
    label: LabelValue
    at: int
    outcomes_floor: int
    carried: Carried | None = None
    """What it is applied from if no example comes."""


class Remembered(Data, frozen=True, gc=False):
    """A resolved id. `label` is None where it expired or was evicted without one."""

    id: str
    label: LabelValue | None
    outcomes_floor: int
    order: int
    """One more with every resolution."""
