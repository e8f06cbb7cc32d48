"""A comparison for people."""

from datetime import UTC, datetime

from mistakebound.commands.output import number_of, render_rate, render_table
from mistakebound.config.keys import render_toml
from mistakebound.core.comparison.comparison import Comparison, Evidence, Side
from mistakebound.core.comparison.evidence import ENOUGH
from mistakebound.core.messages.labels import spelled


def render_comparison(found: Comparison) -> str:
    """Counts and evidence; on what they differ; which ids; what to type."""
    proof, since = found.evidence, found.since
    rows = [
        ("pairs", f"{number_of(found.pairs, 'labelled id')} that both predicted"),
        ("first", _side(found.first)),
        ("second", _side(found.second)),
        ("both right", f"{found.both_right}; both wrong {found.both_wrong}"),
        (
            "one right",
            f"the first alone {proof.only_first_right}, the second alone {proof.only_second_right}",
        ),
        (
            "evidence",
            f"{_evidence(proof)}; equally good ones ever reach {ENOUGH} with probability 1/{ENOUGH}",
        ),
        (
            "since",
            f"never {ENOUGH} so far"
            if since is None
            else f"pair {since.pair}, id {since.id}, {_time(since.at)}: {_evidence(since.evidence)}",
        ),
        ("better", _verdict(found)),
    ]
    if found.cheaper is not None:
        sides = found.first, found.second
        less, more = sides if found.cheaper == "first" else (sides[1], sides[0])
        by = (more.cost or 0.0) - (less.cost or 0.0)
        rows.append(("cheaper", f"the {found.cheaper} ({less.name!r}) by {by:g}"))
    parts = [render_table(*rows)]
    if found.kinds:
        kinds = [
            (one.label, _class(one.first), _class(one.second), one.count, one.newest_id)
            for one in found.kinds
        ]
        parts.append(render_table(("label", "first said", "second said", "ids", "newest"), *kinds))
        ids = [
            (one.id, _time(one.at), spelled(one.label), _class(one.first), _class(one.second))
            for one in found.newest
        ]
        parts.append(render_table(("newest ids", "labelled", "label", "first said", "second said"), *ids))
    parts += _promotion(found)
    return "\n\n".join(parts)


def _side(side: Side) -> str:
    name = f"{side.name!r}" if side.learner is None else f"{side.name!r}, {side.learner}"
    again = f", {side.again} of ids that came again left out" if side.again else ""
    rate = render_rate(side.mistake_rate)
    cost = "" if side.cost is None else f", cost {side.cost:g}"
    return f"{name}: {number_of(side.mistakes, 'mistake')}, rate {rate}{cost}; {number_of(side.alone, 'id')} that only it judged{again}"


def _evidence(one: Evidence) -> str:
    return f"{one.fraction} = {one.decimal:.4g}"


def _verdict(found: Comparison) -> str:
    if found.better is None:
        return "neither: both made the same number of mistakes"
    name = (found.first if found.better == "first" else found.second).name
    by = f"the {found.better} ({name!r}) by {number_of(found.fewer_mistakes, 'mistake')}"
    return f"{by}, and not by chance" if found.since is not None else f"{by}; that may still be chance"


def _promotion(found: Comparison) -> list[str]:
    if found.promotion is None or found.better is None:
        return []
    better, other = (found.first, found.second) if found.better == "first" else (found.second, found.first)
    when = "now" if found.since is not None else "once the evidence is enough"
    if not found.promotion.changes:
        return ["Both have the same settings; nothing is there to promote."]
    if not found.promotion.commands:
        changes = found.promotion.changes.items()
        told = [f"set {key} = {render_toml(value)}" for key, value in changes if value is not None]
        told += [f"leave out {key}" for key, value in changes if value is None]
        return [f"To learn like the better one: {', '.join(told)}"]
    lines = [
        f"To promote {better.name!r} {when}, let consumers read its predictions: it goes on with what it has learned.",
        f"Or begin {other.name!r} afresh with its settings (stop its workers first, and change their settings too):",
        *(f"  {command}" for command in found.promotion.commands),
    ]
    if unset := [key for key, value in found.promotion.changes.items() if value is None]:
        lines.append(f"  and before, from its settings, take out: {', '.join(unset)}")
    return ["\n".join(lines)]


def _class(label: object) -> str:
    return "-" if label is None else spelled(label) if isinstance(label, bool | int | str) else str(label)


def _time(at_ms: int) -> str:
    """Stream time in UTC; that of labelled data, which has none, as it counts the rows."""
    if at_ms < 1_000_000_000_000:
        return f"at {at_ms} ms"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
