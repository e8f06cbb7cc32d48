"""A table of how a stream goes: a line whenever the labelled examples have doubled, as Vowpal Wabbit prints."""

from collections.abc import Callable, Iterable

from mistakebound.commands.output import render_rate
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.reporting.report import Report, rate

HEADS = ("examples", "labelled", "mistakes", "rate since last", "rate overall", "always majority")


class Progress:
    """Writes the heads before the first line, and a last line at the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._next = 1
        self._last: tuple[int, int] | None = None

    def observe(self, ledgers: Iterable[Ledger]) -> None:
        """Write a line if it is time; `ledgers` are all partitions'."""
        life = [ledger.tallies.life for ledger in ledgers]
        if (labelled := sum(tally.judged for tally in life)) >= self._next:
            examples = sum(tally.examples["consumed"] for tally in life)
            mistakes = sum(tally.mistakes for tally in life)
            self._write_line(examples, labelled, mistakes, sum(tally.majority_mistakes for tally in life))

    def finish(self, report: Report) -> None:
        """Write the last line, unless it was written already."""
        if self._last is None or report.labelled != self._last[0]:
            majority = report.baselines["majority"].mistakes
            self._write_line(report.examples, report.labelled, report.mistakes, majority)

    def _write_line(self, examples: int, labelled: int, mistakes: int, majority: int) -> None:
        if self._last is None:
            self._write("  ".join(HEADS))
        before_labelled, before_mistakes = self._last or (0, 0)
        since = rate(mistakes - before_mistakes, labelled - before_labelled)
        rates = (since, rate(mistakes, labelled), rate(majority, labelled))
        cells = (str(examples), str(labelled), str(mistakes), *map(render_rate, rates))
        self._write("  ".join(cell.rjust(len(head)) for cell, head in zip(cells, HEADS, strict=True)))
        self._last = (labelled, mistakes)
        while self._next <= labelled:
            self._next *= 2
