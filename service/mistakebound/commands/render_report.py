"""A report for people."""

import json
from collections.abc import Iterator, Mapping

from mistakebound.commands.output import number_of, render_rate, render_table
from mistakebound.core.messages.dead_letters import SHOWN_BY
from mistakebound.core.messages.tenants import TenantCounts
from mistakebound.core.reporting.measures import Confused, ConfusionReport
from mistakebound.core.reporting.probabilities import Probabilities
from mistakebound.core.reporting.report import AskedLabels, Rejected, Report
from mistakebound.core.theorems.changes import ProvedChanges
from mistakebound.core.theorems.claims import Bound

MOST_CONFUSED = 5


def render_report(report: Report, *, brief: bool = False) -> str:
    """What was counted, what is proved of it, and the model; `brief` leaves out what mistakes are of which class."""
    majority, model = report.baselines["majority"], report.model
    labels = _render_counts({name: count for name, count in report.labels.items() if name != "consumed"})
    examples = _render_counts(report.example_outcomes)
    by_partition = ", ".join(map(str, model.updates))
    worse = ": the learner is worse than always the majority" if report.worse_than_majority else ""
    rows = [
        ("learner", report.learner),
        ("examples", f"{report.examples} ({examples}; waiting {report.waiting})"),
        ("labels", f"{report.labels['consumed']} ({labels}; parked {report.parked})"),
        *(("rejected", text) for text in _render_all_rejected(report)),
        (
            "mistakes",
            f"{report.mistakes} of {report.labelled} labelled, rate {render_rate(report.mistake_rate)}",
        ),
        ("always majority", f"{majority.mistakes}, rate {render_rate(majority.mistake_rate)}{worse}"),
        *(() if brief else _render_confusion(report.confusion)),
        *(() if report.asked is None else _asked_rows(report.asked)),
        *(() if report.probabilities is None else _probability_rows(report.probabilities)),
        ("updates", f"{report.updates} (epoch {model.epoch}, by partition: {by_partition})"),
    ]
    rows += [("tenant" if n == 0 else "", _render_tenant(one)) for n, one in enumerate(report.tenants)]
    if model.window is not None:
        of = f"the last {model.window} updates of each partition count"
        now = "" if model.counting is None else f"; now {', '.join(map(str, model.counting))}"
        rows.append(("window", of + now))
    rows += [("bound", _render_bound(bound)) for bound in report.bounds]
    if report.margin_upper_bound is not None:
        rows.append(("margin", f"at most {report.margin_upper_bound:.4g}, whatever separates the updates"))
    if report.proved_changes is not None:
        rows.append(("changes", _render_changes(report.proved_changes)))
    if model.digest is not None:
        rows.append(("model", f"{model.features} features, sha256 {model.digest}"))
    return render_table(*rows)


def _asked_rows(asked: AskedLabels) -> Iterator[tuple[str, str]]:
    """How many labels were asked for, and what their mistakes say of all of them."""
    wanted, others = asked.labelled + asked.missing, asked.unasked_labelled + asked.unasked_missing
    yield (
        "labels asked",
        f"{wanted} of {number_of(wanted + others, 'example')} (came {asked.labelled}, never came {asked.missing}; came unasked {asked.unasked_labelled})",
    )
    rate = render_rate(asked.estimated_mistake_rate)
    all_came = "" if not asked.missing else ", too low: some never came"
    yield (
        "estimate",
        f"{asked.estimated_mistakes:.1f} mistakes, rate {rate}, from {asked.mistakes} asked for{all_came}",
    )
    if asked.expected is not None:
        one = asked.expected
        yield "expected", f"mistakes {one.count}, on average <= {one.value:.4g} ({one.name}, {one.assumes})"


def _render_confusion(found: ConfusionReport) -> Iterator[tuple[str, str]]:
    """Measures, and which classes are taken for which; nothing where nothing was judged."""
    if not found.judged:
        return
    of, measures = found.model, found.model.measures
    whose = "means over the classes" if found.positive is None else f"of {found.positive}"
    shares = {
        "precision": measures.precision,
        "recall": measures.recall,
        "F1": measures.f1,
        "specificity": measures.specificity,
    }
    text = ", ".join(f"{name} {render_rate(share)}" for name, share in shares.items())
    yield "measures", f"{text} ({whose}); balanced accuracy {render_rate(measures.balanced_accuracy)}"
    against = f"{render_rate(measures.kappa_m)} against always majority, {render_rate(measures.kappa_t)} against the label before"
    yield "kappa", f"{render_rate(measures.kappa)}; {against}"
    if of.cost is not None:
        yield "cost", f"{of.cost:.10g} of these mistakes; always majority {found.majority.cost:.10g}"
    if of.largest:
        pairs = (
            f"{_name(one.actual)} as {_name(one.predicted)} {_times(one)}"
            for one in of.largest[:MOST_CONFUSED]
        )
        left = len(of.largest) - MOST_CONFUSED
        yield "taken for", ", ".join(pairs) + (f", and {number_of(left, 'more pair')}" if left > 0 else "")
    if found.mistakes_by_delay:
        yield (
            "delay",
            f"{number_of(found.mistakes_at_label, 'mistake')} as the model was at each label: waiting cost {found.mistakes_by_delay}",
        )
    if found.unknown:
        yield (
            "unknown",
            f"the classes of {number_of(found.unknown, 'prediction')} that an earlier version judged",
        )


def _name(name: str | None) -> str:
    return "none" if name is None else name


def _times(one: Confused) -> str:
    return str(one.at_least) if one.at_least == one.at_most else f"{one.at_least} to {one.at_most}"


def _render_tenant(one: TenantCounts) -> str:
    name = "all others" if one.tenant is None else json.dumps(one.tenant, ensure_ascii=False)
    counts = f"{one.mistakes} of {one.labelled} labelled, rate {render_rate(one.mistake_rate)}"
    more = "" if one.complete or one.tenant is None else "; more of it is among all others"
    told = f"{number_of(one.examples, 'example')}, {number_of(one.updates, 'update')}"
    return f"{name}: {counts}; {told}{more}"


def _probability_rows(found: Probabilities) -> Iterator[tuple[str, str]]:
    """The Brier score, and of each bin what was predicted and what happened."""
    score, share = render_rate(found.brier_score), render_rate(found.brier_score_of_share)
    yield (
        "probabilities",
        f"Brier score {score} on {found.labelled} labelled (always the share of positives {share})",
    )
    for one in found.bins:
        if one.labelled:
            said, was = render_rate(one.predicted), render_rate(one.observed)
            yield f"  {one.low:.2f} to {one.high:.2f}", f"predicted {said}, observed {was} of {one.labelled}"


def _render_all_rejected(report: Report) -> list[str]:
    """Reason by reason; where only the worker knew the reasons, how many, and where they are kept."""
    if report.rejected:
        return [render_rejected(one) for one in report.rejected]
    counts = {"example": report.example_outcomes["invalid"], "label": report.labels["invalid"]}
    found = " and ".join(number_of(count, noun) for noun, count in counts.items() if count)
    return [f"{found}; see {SHOWN_BY}"] if found else []


def render_rejected(one: Rejected) -> str:
    """How many for which reason, where the first is, and what is wrong with it."""
    count = number_of(one.count, one.stream.removesuffix("s"))
    return f"{count}, {one.reason}; the first{_render_place(one)}: {one.detail}"


def _render_place(one: Rejected) -> str:
    place = one.first
    if place.line is not None:
        return f", line {place.line}"
    return "" if place.offset is None else f", {one.stream}-{place.partition} offset {place.offset}"


def _render_bound(bound: Bound) -> str:
    found = f"<= {bound.value:.4g}" if bound.holds else f"> {bound.value:.4g}: the assumptions do not hold"
    return f"{bound.of} {bound.count} {found} ({bound.name}, {bound.assumes})"


def _render_changes(proved: ProvedChanges) -> str:
    """How many, and which update proved the newest."""
    if not proved.count:
        return "none proved, with the margin declared"
    several = len(proved.by_partition) > 1
    told = [
        f"{one.update} of partition {one.partition}" if several else str(one.update) for one in proved.newest
    ]
    again = f"; {number_of(proved.restarts, 'restart')}" if proved.restarts else ""
    return f"at least {proved.count} proved, with the margin declared, by update {', '.join(told)}{again}"


def _render_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none decided"
