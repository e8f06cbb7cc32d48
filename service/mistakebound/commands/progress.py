"""A table of how a stream goes, a line whenever the labelled examples have doubled; and its summary."""

from collections.abc import Callable, Iterable, Mapping

from mistakebound.commands.output import table
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.reporting.report import Report, rate
from mistakebound.core.theorems.claims import Bound

HEADS = ("examples", "labelled", "mistakes", "rate since last", "rate overall", "always majority")


class Progress:
    """Prints on doubling intervals, as Vowpal Wabbit does, and a last line at the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._next = 1
        self._last = (0, 0)
        self._begun = False

    def look(self, ledgers: Iterable[Ledger]) -> None:
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


def summary(report: Report) -> str:
    """The report as a person reads it."""
    majority = report.baselines["majority"]
    model = report.model
    labels = _named({name: count for name, count in report.labels.items() if name != "consumed"})
    examples = _named(report.example_outcomes)
    by_partition = ", ".join(map(str, model.updates))
    rows = [
        ("learner", report.learner),
        ("examples", f"{report.examples} ({examples}; waiting {report.waiting})"),
        ("labels", f"{report.labels['consumed']} ({labels}; parked {report.parked})"),
        ("mistakes", f"{report.mistakes} of {report.labelled} labelled, rate {report.mistake_rate:.4f}"),
        ("always majority", f"{majority.mistakes}, rate {majority.mistake_rate:.4f}"),
        ("updates", f"{report.updates} (epoch {model.epoch}, by partition: {by_partition})"),
    ]
    if model.window is not None:
        of = f"the last {model.window} updates of each partition count"
        now = "" if model.counting is None else f"; now {', '.join(map(str, model.counting))}"
        rows.append(("window", of + now))
    rows += [("bound", _spelled(bound)) for bound in report.bounds]
    if report.margin_upper_bound is not None:
        rows.append(("margin", f"at most {report.margin_upper_bound:.4g}, whatever separates the updates"))
    if model.digest is not None:
        rows.append(("model", f"{model.features} features, sha256 {model.digest}"))
    first, *rest = rows
    return table(first, rest)


def _spelled(bound: Bound) -> str:
    if bound.holds:
        return f"{bound.of} {bound.count} <= {bound.value:.4g} ({bound.name}, {bound.assumes})"
    return (
        f"{bound.of} {bound.count} > {bound.value:.4g}: the assumptions do not hold "
        f"({bound.name}, {bound.assumes})"
    )


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none decided"
