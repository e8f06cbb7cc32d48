"""How examples and labels can end, and the counts of that for one partition."""

from copy import copy
from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType, json

from mistakebound.core.messages.asking import Asked
from mistakebound.core.messages.confusion import Confusion
from mistakebound.core.messages.reliability import Reliability

ExampleOutcome = Literal["labelled", "expired", "evicted", "duplicate", "invalid"]
LabelOutcome = Literal["applied", "applied_late", "duplicate", "conflict", "expired", "unmatched", "invalid"]
EXAMPLE_OUTCOMES: tuple[ExampleOutcome, ...] = get_args(ExampleOutcome)
LABEL_OUTCOMES: tuple[LabelOutcome, ...] = get_args(LabelOutcome)


TENANT_LINES = 100
"""Most tenants of a partition that are counted one by one: every partition step writes all of them."""
TENANT_NAMES_BYTES = 8_000
"""Most bytes of their names together, as JSON with commas."""


class Tally(Struct):
    """Counts of one partition. Examples consumed = the sum of their outcomes + those waiting; labels likewise, + those parked."""

    examples: dict[str, int]
    labels: dict[str, int]
    mistakes: int = 0
    updates: int = 0
    majority_mistakes: int = 0
    """Mistakes of always predicting the class that was most frequent so far."""
    actual: dict[str, int] = {}
    """Labels applied, by class, spelled as JSON."""
    outstanding: int = 0
    """Most examples waiting in the partition when a label was applied, the labelled one included."""
    confusion: Confusion | UnsetType = UNSET
    """Absent until a version that writes it has judged here."""
    asked: Asked | UnsetType = UNSET
    """Of examples predicted while labels were asked for; absent where there were none."""
    reliability: Reliability | UnsetType = UNSET
    """Of examples whose prediction had a probability; absent where there were none."""

    def __post_init__(self) -> None:
        self.labels.setdefault("applied_late", 0)  # earlier versions did not write it
        missing = {"consumed", *EXAMPLE_OUTCOMES} - self.examples.keys()
        missing |= {"consumed", *LABEL_OUTCOMES} - self.labels.keys()
        if missing:
            raise ValueError(f"the counts lack {', '.join(sorted(missing))}")

    @property
    def waiting(self) -> int:
        """Examples that wait for their label."""
        return 2 * self.examples["consumed"] - sum(self.examples.values())

    @property
    def judged(self) -> int:
        """Predictions judged by their label, from memory or from the label record's own content."""
        return self.labels["applied"] + self.labels["applied_late"]

    def copy(self) -> "Tally":
        """An independent copy."""
        twin = copy(self)
        twin.examples, twin.labels, twin.actual = dict(self.examples), dict(self.labels), dict(self.actual)
        if self.confusion is not UNSET:
            twin.confusion = self.confusion.copy()
        if self.asked is not UNSET:
            twin.asked = copy(self.asked)
        if self.reliability is not UNSET:
            twin.reliability = self.reliability.copy()
        return twin

    def of_asked(self) -> Asked:
        """The counts of labels asked for, from now on there."""
        if self.asked is UNSET:
            self.asked = Asked()
        return self.asked

    def of_reliability(self) -> Reliability:
        """The counts of probabilities, from now on there."""
        if self.reliability is UNSET:
            self.reliability = Reliability()
        return self.reliability


class TenantTally(Struct, array_like=True):
    """Counts of one tenant's examples in one partition, for life: [predicted, labelled, mistakes, updates]."""

    predicted: int = 0
    labelled: int = 0
    mistakes: int = 0
    updates: int = 0

    def add(self, other: "TenantTally") -> None:
        """Add another one's counts."""
        self.predicted += other.predicted
        self.labelled += other.labelled
        self.mistakes += other.mistakes
        self.updates += other.updates


class Tallies(Struct, omit_defaults=True):
    """Counts since the partition's first record, and since the epoch began."""

    life: Tally
    epoch: Tally
    last_label: str | UnsetType = UNSET
    """Class of the newest label applied, spelled as in tables; absent where `confusion` is, and before the first label."""
    tenants: dict[str, TenantTally] = {}
    """For life: the first tenants that the partition met, in that order, within `TENANT_LINES` and `TENANT_NAMES_BYTES`.
    A line begins with its tenant's first example or never, so each is exact, and a function of the partition's log."""
    other_tenants: TenantTally | None = None
    """All later tenants together."""

    def of_tenant(self, tenant: str) -> TenantTally:
        """The tenant's line, or else that of the others; begun where there is none yet."""
        line = self.tenants.get(tenant)
        if line is None and self._takes_another(tenant):
            line = self.tenants[tenant] = TenantTally()
        if line is None:
            line = self.other_tenants = self.other_tenants or TenantTally()
        return line

    def _takes_another(self, tenant: str) -> bool:
        if len(self.tenants) >= TENANT_LINES:
            return False
        return sum(len(json.encode(name)) + 1 for name in (*self.tenants, tenant)) <= TENANT_NAMES_BYTES

    def copy(self) -> "Tallies":
        """An independent copy."""
        tenants = {name: copy(line) for name, line in self.tenants.items()}
        return Tallies(
            self.life.copy(), self.epoch.copy(), self.last_label, tenants, copy(self.other_tenants)
        )

    def begin_epoch(self) -> None:
        """What is counted for the epoch starts at zero."""
        self.epoch = zero()


def zero() -> Tally:
    """Nothing counted yet."""
    return Tally(
        dict.fromkeys(("consumed", *EXAMPLE_OUTCOMES), 0), dict.fromkeys(("consumed", *LABEL_OUTCOMES), 0)
    )
