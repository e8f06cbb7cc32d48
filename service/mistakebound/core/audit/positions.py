"""The positions that the group has committed, against the newest partition steps: one transaction wrote both."""

from collections.abc import Iterable

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.partition_steps import RecordedStep
from mistakebound.core.audit.topics_read import Source
from mistakebound.core.messages.schema import encode
from mistakebound.core.records import Position


def check_positions(
    source: Source, newest: Iterable[tuple[int, RecordedStep | None]], findings: Findings
) -> None:
    """Compare them where the log stands still: `newest` is each walked partition's newest partition step."""
    positions = source.positions()
    if not any(positions.values()):
        return
    for p, step in newest:
        if source.goes_on(p, -1 if step is None else step.last_offset):
            continue  # noted by the walk
        found, due = positions.get(p), None if step is None else _position(step)
        where = f"partition {p}" if step is None else f"outcomes-{p} offset {step.last_offset}"
        text = f"the group has committed {_shown(found)}, should be {_shown(due)}"
        findings.check("group positions", where, found == due, text)


def _position(step: RecordedStep) -> Position:
    return Position(step.inputs.examples, step.inputs.labels, encode(step.recovery_point).decode())


def _shown(position: Position | None) -> str:
    if position is None:
        return "nothing"
    return f"examples {position.examples}, labels {position.labels}, recovery point {position.metadata[:100]}"
