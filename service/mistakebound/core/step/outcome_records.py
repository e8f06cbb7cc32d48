"""A partition step's decisions as records of `outcomes`: one, or as many parts as fit the topic."""

from collections.abc import Iterator, Mapping, Sequence

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.dead_letters import record_bytes
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import Decision, Inputs, Outcomes, RecoveryPoint, Version, encode
from mistakebound.core.records import Outgoing

MOST_PARTS = 10**9


def write_outcomes(
    partition: int,
    model: Version,
    decisions: list[Decision],
    order: list[int],
    ledger: Ledger,
    recovery_point: RecoveryPoint,
    largest: int,
    adopted: list[int] | None = None,
    pointers: dict[str, str] | None = None,
    schemas: Mapping[str, SchemaText] | None = None,
) -> Iterator[Outgoing]:
    """The records, in order, each of at most `largest` bytes; the last one carries the summary.

    `model`: the version when the partition step began; `ledger`: as it is when the partition step ends. `schemas`: to be
    written with it; each has a part of its own, and is known to fit.
    """
    first = 0
    for first, (schema_id, text) in enumerate((schemas or {}).items(), 1):
        part = Outcomes(part=first - 1, model=model, decisions=[], schemas={schema_id: text})
        yield Outgoing("outcomes", partition, None, encode(part))

    def last(part: int, rest: list[Decision]) -> bytes:
        return encode(
            Outcomes(
                part=part,
                model=model,
                decisions=rest,
                order=order,
                at=ledger.stream_time,
                inputs=Inputs(ledger.examples_next, ledger.labels_next),
                recovery_point=recovery_point,
                tallies=ledger.tallies,
                adopted=adopted,
                messages=pointers,
                schemas_at=dict(ledger.schemas) or None,
            )
        )

    whole = last(first, decisions)
    if record_bytes(None, whole, ()) <= largest:
        yield Outgoing("outcomes", partition, None, whole)
        return
    inner = encode(Outcomes(part=MOST_PARTS, model=model, decisions=[]))
    parts = _split(decisions, largest - record_bytes(None, inner, ()))
    if record_bytes(None, last(first + len(parts) - 1, parts[-1]), ()) > largest:
        parts.append([])
    for number, its in enumerate(parts[:-1], first):
        value = encode(Outcomes(part=number, model=model, decisions=its))
        yield Outgoing("outcomes", partition, None, value)
    yield Outgoing("outcomes", partition, None, last(first + len(parts) - 1, parts[-1]))


def _split(decisions: Sequence[Decision], room: int) -> list[list[Decision]]:
    """Split decisions into parts, each of which is sure to fit into `room` bytes."""
    parts: list[list[Decision]] = [[]]
    left = room
    for decision in decisions:
        size = len(encode(decision)) + 1
        if size > left:
            parts.append([])
            left = room
        parts[-1].append(decision)
        left -= size
    return parts
