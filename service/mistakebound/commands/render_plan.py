"""The plan of `reset`: what goes on now, what would begin, what counts no more and what stays."""

from typing import Any

from msgspec import to_builtins

from mistakebound.commands.output import render_table
from mistakebound.commands.render_epochs import render_base, render_changes, render_counts, render_settings
from mistakebound.core.reporting.report import Report
from mistakebound.worker.epochs.reset import Plan


def render_plan(plan: Plan, stays: Report) -> str:
    """For people."""
    follows, begins = plan.follows, plan.begins
    own = render_counts(plan.history.updates[follows.epoch])
    rows = [
        ("now", f"epoch {follows.epoch}, from {render_base(follows.base)}; updates by partition: {own}"),
        *[("", line) for line in render_settings(follows)],
        ("next", f"epoch {begins.epoch}, from {render_base(begins.base)}"),
        *[("changes", line) for line in render_changes(plan.changes) or ["no setting"]],
    ]
    for epoch, counts in plan.given_up().items():
        if any(counts):
            which = f"updates by partition: {render_counts(counts)}"
            rows.append(("counts no more", f"of epoch {epoch}, the last {which} (they stay in the log)"))
    rows += [
        (
            "stays",
            f"counts for life ({stays.labelled} labelled, {stays.mistakes} mistakes, {stays.updates} updates)",
        ),
        (
            "",
            f"{stays.waiting} waiting examples and {stays.parked} parked labels; remembered ids; all offsets",
        ),
        ("starts at 0", "the epoch's counts, n and clock"),
        (
            "workers",
            "stop them first: on Kafka reset refuses while others are in the group; on sqlite a running one is",
        ),
        ("", "shut out, and exits unless it has the settings of the new epoch"),
    ]
    return render_table(*rows)


def plan_as_dict(plan: Plan, stays: Report) -> dict[str, Any]:
    """For programs: both epochs whole."""
    follows = plan.follows
    return {
        "now": {**to_builtins(follows), "updates": list(plan.history.updates[follows.epoch])},
        "next": to_builtins(plan.begins),
        "changes": {each.key: {"before": each.before, "after": each.after} for each in plan.changes},
        "counts_no_more": {str(epoch): list(counts) for epoch, counts in plan.given_up().items()},
        "stays": {
            "labelled": stays.labelled,
            "mistakes": stays.mistakes,
            "updates": stays.updates,
            "waiting": stays.waiting,
            "parked": stays.parked,
        },
    }
