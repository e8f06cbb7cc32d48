"""A report for people."""

from collections.abc import Mapping

from mistakebound.commands.output import render_table
from mistakebound.core.reporting.report import Report
from mistakebound.core.theorems.claims import Bound


def render_report(report: Report) -> str:
    """What was counted, what is proved of it, and the model."""
    majority, model = report.baselines["majority"], report.model
    labels = _render_counts({name: count for name, count in report.labels.items() if name != "consumed"})
    examples = _render_counts(report.example_outcomes)
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
    rows += [("bound", _render_bound(bound)) for bound in report.bounds]
    if report.margin_upper_bound is not None:
        rows.append(("margin", f"at most {report.margin_upper_bound:.4g}, whatever separates the updates"))
    if model.digest is not None:
        rows.append(("model", f"{model.features} features, sha256 {model.digest}"))
    return render_table(*rows)


def _render_bound(bound: Bound) -> str:
    found = f"<= {bound.value:.4g}" if bound.holds else f"> {bound.value:.4g}: the assumptions do not hold"
    return f"{bound.of} {bound.count} {found} ({bound.name}, {bound.assumes})"


def _render_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none decided"
