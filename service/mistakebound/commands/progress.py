"""A table of how a stream goes: a line whenever the labelled examples have doubled."""

from collections.abc import Callable, Iterable

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.reporting.report import Report, rate

HEADS = ("examples", "labelled", "mistakes", "rate since last", "rate overall", "always majority")


class Progress:
    """Prints on doubling intervals, as Vowpal Wabbit does, and a last line at the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._next = 1
        self._last = (0, 0)
        self._begun = False

    def observe(self, ledgers: Iterable[Ledger]) -> None:
        """Print a line if it is time; `ledgers` are all partitions'."""
        tallies = [ledger.tallies.life for ledger in ledgers]
        labelled = sum(tally.judged for tally in tallies)
        if labelled >= self._next:
            self._line(
                sum(tally.examples["consumed"] for tally in tallies),
                labelled,
                sum(tally.mistakes for tally in tallies),
                sum(tally.majority_mistakes for tally in tallies),
            )

    def finish(self, report: Report) -> None:
        """The last line, unless it was printed already."""
        if report.labelled != self._last[0] or not self._begun:
            majority = report.baselines["majority"].mistakes
            self._line(report.examples, report.labelled, report.mistakes, majority)

    def _line(self, examples: int, labelled: int, mistakes: int, majority: int) -> None:
        if not self._begun:
            self._write("  ".join(HEADS))
            self._begun = True
        before_labelled, before_mistakes = self._last
        cells = (
            str(examples),
            str(labelled),
            str(mistakes),
            f"{rate(mistakes - before_mistakes, labelled - before_labelled):.4f}",
            f"{rate(mistakes, labelled):.4f}",
            f"{rate(majority, labelled):.4f}",
        )
        self._write("  ".join(cell.rjust(len(head)) for cell, head in zip(cells, HEADS, strict=True)))
        self._last = (labelled, mistakes)
        while self._next <= labelled:
            self._next *= 2
