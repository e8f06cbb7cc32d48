"""Whatever a record leads to must fit its topic: its size is checked before predicting, not found out when sending."""

from dataclasses import dataclass

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.confusion import (
    FOREIGN_BYTES,
    MOST_FOREIGN,
    MOST_HELD,
    MOST_NAMED,
    MOST_TABLED,
    NAMES_BYTES,
)
from mistakebound.core.messages.crossing import TENANT_BYTES
from mistakebound.core.messages.dead_letters import record_bytes
from mistakebound.core.messages.inputs import ID_BYTES
from mistakebound.core.messages.schema import encode
from mistakebound.core.messages.tallies import TENANT_LINES, TENANT_NAMES_BYTES, Tallies, zero
from mistakebound.core.model.model import Model
from mistakebound.core.records import Record
from mistakebound.core.step.schemas import MOST_SCHEMAS

PER_PARTITION_BYTES = 42
"""Largest entry of a version: two numbers of 20 digits and their commas."""
FIXED_BYTES = 400
"""Everything else in a prediction or update: names, numbers, score."""
COUNT_BYTES = 13
"""Most digits of a count of one partition."""
SUMMARY_BYTES = len(encode(Tallies(zero(), zero()))) + 40 * COUNT_BYTES + 400
"""The last `outcomes` record of a partition step, without classes, versions, decisions and `order`: 36 counts and names."""
TENANTS_BYTES = TENANT_NAMES_BYTES + (TENANT_LINES + 1) * (4 * COUNT_BYTES + 8) + 40
"""What the lines of tenants may add to it: names, and four counts each."""

SCHEMAS_BYTES = MOST_SCHEMAS * (40 + COUNT_BYTES)
"""What the schemas written may add to it: a GUID and an offset each."""


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Largest record in bytes that each output topic is sure to take."""

    predictions: int = 1_000_000
    outcomes: int = 1_000_000
    updates: int = 1_000_000
    dead_letters: int = 1_000_000


class Sizes:
    """The most that a prediction or update of this model takes beside the example's own bytes."""

    def __init__(self, model: Model, limits: SizeLimits) -> None:
        self._limits = limits
        self._version = PER_PARTITION_BYTES * model.partitions
        # An id of control characters is escaped six-fold; labels are the true and the predicted one.
        self._beside = 6 * ID_BYTES + 2 * model.class_bytes + model.score_bytes + self._version + FIXED_BYTES
        self._beside += 6 * TENANT_BYTES * (model.settings.features.cross is not None)
        self._schemas = SCHEMAS_BYTES * bool(model.reader.decodings)
        self._fixed = record_bytes(None, None, ()) + self._beside + self._version
        self._surely_fits = min(limits.predictions, limits.updates) - self._fixed

    def check(self, record: Record, features: bytes) -> None:
        """Raises BadRecord for an example whose prediction or update could be too large."""
        if not record.headers and len(features) + len(record.key or b"") <= self._surely_fits:
            return
        body = len(features) + self._beside
        prediction = record_bytes(record.key, None, record.headers) + body
        update = record_bytes(None, None, ()) + body + self._version
        less = "send fewer features, or raise max.message.bytes"
        _check("the example", prediction, "predictions", self._limits.predictions, less)
        _check("the example", update, "updates", self._limits.updates, less)

    def check_classes(self, classes: int, names: int, records: int, *, of_tenants: bool) -> None:
        """Raises BadRecord where this many open classes could make the tallies too large for `outcomes`.

        `names`: bytes of their names as JSON; `records`: most in a step, each of which may be a run of its own;
        `of_tenants`: there are lines of tenants, or there may come some.
        """
        tallies = 2 * (names + (COUNT_BYTES + 2) * classes + _confusion_bytes(classes, names))
        tallies += TENANTS_BYTES * of_tenants + self._schemas
        size = record_bytes(None, None, ()) + SUMMARY_BYTES + self._version + 2 * records + tallies
        less = "raise max.message.bytes, send fewer or shorter classes, or lower batch.max_records"
        _check("with one more class the tallies", size, "outcomes", self._limits.outcomes, less)

    def check_carried(self, features: bytes) -> None:
        """Raises BadRecord for a label whose own content could make a decision or an update too large."""
        size = len(features) + self._fixed
        less = "send fewer features, or raise max.message.bytes"
        _check("the label's own content", size, "outcomes", self._limits.outcomes, less)
        _check("the label's own content", size, "updates", self._limits.updates, less)


def _confusion_bytes(classes: int, names: int) -> int:
    """The most that counts by (actual, predicted) take, with the classes that no label had, and null."""
    places = min(classes + MOST_FOREIGN, MOST_NAMED) + 1
    count, frame = COUNT_BYTES + 2, 200
    if places <= MOST_TABLED + 1:
        numbers = 2 * places * places
    else:
        numbers = max(2 * (MOST_TABLED + 1) ** 2, 5 * places + 2 * 4 * MOST_HELD)
    return min(names + FOREIGN_BYTES, NAMES_BYTES) + numbers * count + frame


def _check(what: str, size: int, topic: str, largest: int, less: str) -> None:
    if size > largest:
        raise BadRecord(
            "oversize", f"{what} could need {size} bytes in {topic}, which takes {largest}; {less}"
        )
