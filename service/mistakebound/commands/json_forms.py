"""What `--json` prints, where no report or status is printed: a class for each document.

Verbs make these, and `--schema` describes them. New fields may come; none changes its meaning.
"""

from typing import Any, Literal

from msgspec import Struct, field

from mistakebound.core.audit.findings import Finding
from mistakebound.core.messages.schema import Epoch
from mistakebound.core.reporting.report import Rejected
from mistakebound.core.reporting.status import ChangedSetting


class Audited(Struct, frozen=True):
    """`audit`."""

    checked: dict[str, int]
    """How often each check was made."""
    differences: dict[str, int]
    """How often it found a difference, where it did."""
    notes: dict[str, int]
    """What could not be checked, or only within a tolerance, and how often."""
    first: list[Finding]


class StoredFile(Struct, frozen=True):
    """A checkpoint in its store."""

    file: str
    bytes: int
    state: str
    """`valid`, or `invalid: ` and why."""


class SettingShown(Struct, frozen=True):
    """A setting in effect."""

    value: Any
    origin: str
    """`default`, `file`, `environment` or `flag`."""
    from_: str | None = field(name="from")
    """The file or variable."""


class Seeded(Struct, frozen=True):
    """`seed`."""

    labelled: int
    unread: int
    seeds: list[int]
    """By partition."""
    epoch: int
    executed: bool
    rejected: list[Rejected]


class PresentEpoch(Epoch, frozen=True, kw_only=True):
    """An epoch, and its updates by partition."""

    updates: list[int]


class Stays(Struct, frozen=True):
    """Counts for life, which no reset touches."""

    labelled: int
    mistakes: int
    updates: int
    waiting: int
    parked: int


class ResetShown(Struct, frozen=True):
    """`reset`."""

    now: PresentEpoch
    next: Epoch
    changes: dict[str, ChangedSetting]
    counts_no_more: dict[str, list[int]]
    """By epoch: the last updates of each partition that do not count any more."""
    stays: Stays
    executed: bool


class LearnerShown(Struct, frozen=True):
    """One of `learners`."""

    kind: str
    source: str
    parameters: list[str]
    needs: list[str]
    bound: str
    bounds: str
    shared: str
    features: str
    classes: str
    issued: bool
    """Whether `labels.delay_policy = "issued"` is allowed."""


class ConceptClass(Struct, frozen=True):
    """One of `learners --concepts`."""

    name: str
    learners: list[str]
    meaning: str


class ShownExample(Struct, frozen=True):
    """An example of a lesson: a digit for each variable, x1 first."""

    example: str
    label: bool


class Taught(Struct, frozen=True):
    """`teach`."""

    protocol: Literal["queries", "teacher", "nature"]
    concept: str
    variables: int
    examples: list[ShownExample]
    count: int
    positive: int
    mistakes: int
    hypothesis: str
    exact: bool
    proved: bool


class TopicFinding(Struct, frozen=True):
    """One rule on one topic: a line of `topics check`."""

    topic: str
    """Logical name."""
    rule: str
    """The broker's name of the setting, or a word of our own."""
    found: str
    wanted: str
    verdict: Literal["ok", "warning", "failed"]
    remedy: str = ""
    """Empty when ok."""
