"""How the passes over labelled data ended, and other rules beside the learner, for people."""

from mistakebound.commands.output import number_of, render_rate, render_table
from mistakebound.commands.render_report import render_report
from mistakebound.core.replay.comparators import Comparison
from mistakebound.core.replay.comparators.losses import Losses
from mistakebound.core.reporting.report import Reevaluation, Report

WAITED = ("waited", "mistakes", "rate")
HEADS = ("rule", "mistakes", "rate", "hinge", "squared", "log")


def render_replay(report: Report, *, shuffled: bool) -> str:
    """The report, and what labelled data may add to it."""
    parts = [render_report(report)]
    if report.passes:
        parts.append(render_passes(report, shuffled=shuffled))
    if report.reevaluation is not None:
        parts.append(render_reevaluation(report.reevaluation))
    return "\n".join(parts)


def render_comparison(found: Comparison, learner: str) -> str:
    """A row for each rule; then the best separator's margin and the regret against it, or why there is none."""
    rules = {
        learner: found.learner,
        "majority so far": found.majority,
        "last label": found.last_label,
        f"logistic regression, rate {found.learning_rate:g}": found.logistic_regression,
    }
    best = found.best_separator
    if best is not None:
        rules["best separator"] = best.losses
    lines = [render_table(HEADS, *(_row(name, losses) for name, losses in rules.items()))]
    if best is None or found.regret is None:
        lines.append(str(found.separator_missing))
    else:
        lines.append(
            f"separable with margin {best.margin:g}"
            if best.margin is not None
            else "not separable: the best separator is the one of the least hinge loss"
        )
        lines.append(
            f"regret {number_of(found.regret.mistakes, 'mistake')}, {found.regret.hinge:g} hinge loss"
        )
    return "\n".join(lines)


def _row(name: str, losses: Losses) -> tuple[str, ...]:
    sums = (losses.hinge, losses.squared, losses.log)
    return name, str(losses.mistakes), render_rate(losses.mistake_rate), *(f"{value:.6g}" for value in sums)


def render_passes(report: Report, *, shuffled: bool) -> str:
    """One line: converged, in a loop, or neither yet."""
    count = len(report.passes)
    counts = ", ".join(str(one.updates) for one in report.passes[:20]) + (", ..." if count > 20 else "")
    if not report.labelled:
        end = "nothing was judged"
    elif report.converged:
        end = "converged: the last pass needed no update"
    elif report.passes and report.passes[-1].updates == 0:
        end = "the last pass needed no update, yet made mistakes: no hypothesis within its reach agrees with the labels"
    elif report.cycle is not None:
        first, again = report.cycle
        end = f"theta after pass {again} is theta after pass {first}: the data is not separable" + (
            "" if shuffled else ", and the same passes would follow for ever"
        )
    else:
        end = "not converged"
    return f"passes           {count} (updates {counts}); {end}"


def render_reevaluation(found: Reevaluation) -> str:
    """A row for each time at which examples were predicted, and how much their predictions changed."""
    bins = len(found.mistakes) - 1
    when = [
        "predicted at once",
        *(f"{place / bins:.0%}" for place in range(1, bins)),
        "when the label came",
    ]
    rows = zip(when, found.mistakes, map(render_rate, found.mistake_rates), strict=True)
    changed = "-" if found.volatility is None else f"{found.volatility:.4g}"
    last = (
        f"volatility {changed} changes an example; {found.mended} mended by the wait, {found.spoiled} spoiled"
    )
    return "\n".join(("", render_table(WAITED, *rows), last))
