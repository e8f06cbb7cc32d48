"""What an audit checked, and where the log differs from what its inputs come to."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

CHECKS = (
    "epochs",
    "update numbers",
    "update versions",
    "record forms",
    "steps",
    "step versions",
    "committed positions",
    "predictions",
    "decisions",
    "schemas",
    "updates",
    "labels without update",
    "tallies",
    "dead letters",
    "leftovers",
    "group positions",
    "checkpoint files",
    "checkpoint models",
    "checkpoint ledgers",
)
"""Everything that is checked, in the order of the table."""


BROUGHT_BACK = (
    "ids that an older epoch's smaller labels.remember had forgotten, and an earlier version brought back, were taken "
    "on trust"
)


class Finding(NamedTuple):
    """One difference."""

    check: str
    """One of `CHECKS`."""
    place: str
    """Topic-partition and offset, or a file."""
    text: str
    """What is there, and what should be."""


class Findings:
    """Counts of all checks, and the first `most` differences."""

    def __init__(self, most: int = 10) -> None:
        self._most = most
        self.checked: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()
        self.first: list[Finding] = []
        self.notes: Counter[str] = Counter()
        """What could not be checked, or only within a tolerance, and how often."""

    @property
    def differences(self) -> int:
        """How many differences there are."""
        return self.differing.total()

    def check(self, name: str, place: str, holds: bool, text: Callable[[], str] | str) -> bool:
        """Count one check, and a difference where it does not hold. Returns whether it holds."""
        assert name in CHECKS
        self.checked[name] += 1
        if not holds:
            self.differing[name] += 1
            if len(self.first) < self._most:
                self.first.append(Finding(name, place, text if isinstance(text, str) else text()))
        return holds

    def note(self, text: str) -> None:
        """Count something that was not checked."""
        self.notes[text] += 1
