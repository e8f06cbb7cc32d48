"""`outcomes` as whole partition steps: the parts of each put together again."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.form import wrong_form
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import (
    Decision,
    Inputs,
    Outcomes,
    RecoveryPoint,
    Version,
    read_outcomes,
)
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.records import Record


class RecordedStep(NamedTuple):
    """One partition step as it was written down."""

    first_offset: int
    last_offset: int
    time_ms: int
    """Record time of its last record."""
    model: Version
    decisions: list[tuple[Decision, int]]
    """Each with the offset of the record it is in."""
    order: list[int]
    at: int
    inputs: Inputs
    recovery_point: RecoveryPoint
    tallies: Tallies
    adopted: list[int] | None = None
    messages: dict[str, str] | None = None
    schemas: Mapping[str, tuple[SchemaText, int]] = {}
    """Written with it, each with the offset of its part."""
    schemas_at: Mapping[str, int] | None = None


def recorded_steps(records: Iterable[Record], findings: Findings) -> Iterator[RecordedStep]:
    """Whole partition steps in order; a part that belongs to none is a difference. Raises BadLog."""
    parts: list[tuple[Record, Outcomes]] = []
    for record in records:
        part = read_outcomes(record)
        if part.part == 0 and parts:  # its transaction was torn, so the step was made again
            findings.note("parts of a torn partition step were passed over: it was made again")
            parts = []
        wrong = wrong_form(record, part)
        findings.check("record forms", record.location, not wrong, wrong)
        whole = part.part == len(parts) and (not parts or part.model == parts[0][1].model)
        text = f"part {part.part} continues no partition step"
        if not findings.check("steps", record.location, whole, text):
            parts = []
        parts.append((record, part))
        last = (part.order, part.at, part.inputs, part.recovery_point, part.tallies)
        if all(field is None for field in last):
            continue
        whole = None not in last and _are_runs(part.order or [])
        text = "its last part lacks order, at, inputs, marks or tallies, or its order has a run of nothing"
        if findings.check("steps", record.location, whole, text):
            decisions = [(decision, each.offset) for each, its in parts for decision in its.decisions]
            first = parts[0][0].offset
            yield RecordedStep(
                first,
                record.offset,
                record.timestamp_ms,
                part.model,
                decisions,
                *last,  # type: ignore[arg-type]
                part.adopted,
                part.messages,
                {
                    name: (text, each.offset)
                    for each, its in parts
                    for name, text in (its.schemas or {}).items()
                },
                part.schemas_at,
            )
        parts = []
    if parts:
        findings.check("steps", parts[-1][0].location, False, "the last partition step has no last part")


def _are_runs(order: list[int]) -> bool:
    """Run lengths: only the first one, of examples, may be 0."""
    return all(count >= (place > 0) for place, count in enumerate(order))
