"""The model in a checkpoint, compared with the fold of `updates` to its version."""

from collections.abc import Mapping
from struct import pack

import msgspec

from mistakebound.core.audit.changes import wrong_changes
from mistakebound.core.audit.compare import canonical
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.replica import Replica, settings_of
from mistakebound.core.audit.topics_read import Source
from mistakebound.core.checkpoint_content import Checkpoint
from mistakebound.core.faults import BadLog, BadRecord
from mistakebound.core.messages.schema import Epoch
from mistakebound.settings import MessageSettings


def check_model(
    source: Source,
    name: str,
    found: Checkpoint,
    epochs: Mapping[int, Epoch],
    messages: MessageSettings,
    findings: Findings,
) -> None:
    """Compare rows to the bit, names, version, positions and epochs."""
    wrong = [f"epoch {e.epoch} is not as in the log" for e in found.epochs if epochs.get(e.epoch) != e]
    if not wrong:
        try:
            wrong = _differences(source, found, epochs, messages, findings)
        except (BadLog, BadRecord) as error:
            wrong = [str(error)]
    findings.check("checkpoint models", name, not wrong, "; ".join(wrong))


def _differences(
    source: Source,
    found: Checkpoint,
    epochs: Mapping[int, Epoch],
    messages: MessageSettings,
    findings: Findings,
) -> list[str]:
    recorded = found.model
    lengths = {len(recorded.updates), len(recorded.clock), len(found.updates_next)}
    if lengths != {source.partitions}:
        return [f"it is of {lengths} partitions, the log has {source.partitions}"]
    replica = Replica(source, settings_of(epochs[recorded.epoch], messages), recorded.epoch, epochs)
    wrong = []
    for q, updates in enumerate(recorded.updates):
        if not replica.reach(q, updates):
            wrong.append(f"it holds {updates} updates of partition {q}, the log {replica.model.updates[q]}")
        last, after, end = replica.last_offset[q], replica.next_offset(q), found.updates_next[q]
        if not last < end or (after is not None and end > after):
            wrong.append(f"it goes on at offset {end} of updates-{q}, should be {last + 1}")
    model = replica.model
    for q, clock in enumerate(recorded.clock):
        ledger = found.ledgers.get(q)
        own = None if ledger is None else ledger.tallies.epoch.judged
        if clock < model.clock[q] or (own is not None and clock != own):
            wrong.append(f"clock {q} is {clock}, should be {model.clock[q] if own is None else own}")
    comparable = model.kind.comparable
    try:
        one = canonical(comparable(recorded.state))
    except (KeyError, TypeError, ValueError):
        one = None
    made = model.learner.dump()
    if one != canonical(comparable(msgspec.msgpack.decode(msgspec.msgpack.encode(made)))):
        wrong.append(f"its rows are not the fold of its updates{_first_row(recorded.state, made)}")
    if pack("<d", recorded.radius) != pack("<d", model.radius) or recorded.decided != model.decided:
        wrong.append(
            f"radius and decided are {recorded.radius!r} and {recorded.decided}, "
            f"should be {model.radius!r} and {model.decided}"
        )
    if recorded.changes is None and model.changes is not None:
        findings.note("checkpoints of an earlier version do not count proved changes")
        return wrong
    if text := wrong_changes(source, model, recorded.changes):
        wrong.append(text)
    elif model.changes is not None and canonical(recorded.changes) != canonical(
        msgspec.msgpack.decode(msgspec.msgpack.encode(model.changes.dump()))
    ):
        wrong.append("the sums of its present stretches are not those of its updates")
    return wrong


def _first_row(recorded: object, made: object) -> str:
    """The first coordinate that differs, where the state is rows of numbers."""
    if not isinstance(recorded, dict) or not isinstance(made, dict):
        return ""
    for part, rows in made.items():
        for q, row in enumerate(rows):
            try:
                other = recorded[part][q]
                for name in sorted({*row, *other}):
                    if canonical(row.get(name)) != canonical(other.get(name)):
                        return (
                            f": {part} of {name!r} in partition {q} is {other.get(name)!r}, "
                            f"should be {row.get(name)!r}"
                        )
            except (AttributeError, IndexError, KeyError, TypeError):
                return f": {part} of partition {q}"
    return ""
