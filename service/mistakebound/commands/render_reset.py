"""The plan of `reset`: the present epoch, the next one, what no longer counts and what stays."""

from msgspec import structs

from mistakebound.commands.json_forms import PresentEpoch, ResetShown, Stays
from mistakebound.commands.output import number_of, render_table
from mistakebound.commands.render_epochs import render_base, render_changes, render_counts, render_settings
from mistakebound.core.reporting.report import Report
from mistakebound.core.reporting.status import ChangedSetting
from mistakebound.worker.epochs.reset import Plan as ResetPlan


def render_reset(plan: ResetPlan, stays: Report) -> str:
    """The plan for people."""
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
            last = f"the last updates by partition: {render_counts(counts)}"
            rows.append(("counts no more", f"of epoch {epoch}, {last} (they stay in the log)"))
    told = f"{number_of(stays.mistakes, 'mistake')}, {number_of(stays.updates, 'update')}"
    life = f"{stays.labelled} labelled, {told}"
    held = f"{number_of(stays.waiting, 'waiting example')} and {number_of(stays.parked, 'parked label')}"
    rows += [
        ("stays", f"counts for life ({life})"),
        ("", f"{held}; remembered ids; all offsets"),
        ("starts at 0", "the epoch's counts, n and clock"),
        (
            "workers",
            "stop them first: on Kafka reset refuses while others are in the group; on sqlite a running",
        ),
        ("", "worker is shut out, and exits unless it has the settings of the new epoch"),
    ]
    return render_table(*rows)


def reset_form(plan: ResetPlan, stays: Report, *, executed: bool) -> ResetShown:
    """The plan for programs: both epochs whole."""
    follows = plan.follows
    return ResetShown(
        now=PresentEpoch(**structs.asdict(follows), updates=list(plan.history.updates[follows.epoch])),
        next=plan.begins,
        changes={each.key: ChangedSetting(each.before, each.after) for each in plan.changes},
        counts_no_more={str(epoch): list(counts) for epoch, counts in plan.given_up().items()},
        stays=Stays(stays.labelled, stays.mistakes, stays.updates, stays.waiting, stays.parked),
        executed=executed,
    )
