"""Steps whose transaction was torn: some of it is in the log, some is not. What can be gone on from, and how.

A broker that applies a stray request of an earlier transaction can end the next one in the middle. Then the committed
position and the newest outcomes disagree. `outcomes` is what counts: each of its steps names where it ends. Going on
from there loses nothing if what they count is there, and this is looked at first.
"""

from typing import NamedTuple

from mistakebound.core.faults import BadLog
from mistakebound.core.ledger.disagreement import OtherPosition
from mistakebound.core.messages.schema import Outcomes, encode, read_outcomes
from mistakebound.core.model.model import Model
from mistakebound.core.records import Position, Record
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log


class WholeStep(NamedTuple):
    """The newest partition step of which all outcomes are there."""

    outcomes: Outcomes
    position: Position


def newest_step(log: Log, partition: int) -> WholeStep | None:
    """None where no partition step was ever committed. Raises BadLog.

    Offsets are always committed together with it, so another position means that somebody else has changed the
    offsets, or that a transaction was torn.
    """
    found = newest_record(log, "outcomes", partition, _ends_a_step)
    if found is None:
        return None
    last = read_outcomes(found)
    assert last.inputs is not None
    if last.recovery_point is None:
        raise BadLog(f"{found.location} has no marks; only the worker may write this topic")
    metadata = encode(last.recovery_point).decode()
    return WholeStep(last, Position(last.inputs.examples, last.inputs.labels, metadata))


def never_stepped(log: Log, partition: int, newest: WholeStep | None) -> bool:
    """Whether `outcomes` holds no step, and none was deleted. `newest`: what `newest_step` found."""
    return newest is None and log.low_watermark("outcomes", partition) == 0


def _ends_a_step(record: Record) -> bool:
    return read_outcomes(record).inputs is not None


def settled(log: Log, partition: int, committed: Position, found: OtherPosition) -> Position:
    """The position to go on from, where the committed one is the worker's own and was only torn off its outcomes.

    Raises `found` where it was not: then somebody has moved the offsets.
    """
    newest = newest_step(log, partition)
    if never_stepped(log, partition, newest):
        raise BadLog(
            f"the group's offsets of partition {partition} are {committed.examples} and {committed.labels}, but "
            f"outcomes-{partition} holds nothing: its first transaction was torn, or the topic was made anew. Start with "
            "--resume-from-outcomes to begin at the first records that are there; predictions that exist are kept"
        ) from found
    if newest is None:
        raise found
    ahead = committed.examples >= newest.position.examples and committed.labels >= newest.position.labels
    if not found.passed and not ahead:
        raise found
    return newest.position


def refuse_other_tally(log: Log, model: Model, partition: int, counted: int) -> None:
    """Raises BadLog where `updates` holds another number than `outcomes` counts, with the way on."""
    there = model.updates[partition]
    if there == counted:
        return
    version = ",".join(map(str, _counted_version(log, model)))
    gone = f"{counted - there} updates are gone" if there < counted else "no label is lost"
    raise BadLog(
        f"updates-{partition} holds {there} updates of epoch {model.epoch}, but the "
        f"tally in outcomes-{partition} says {counted}; a transaction was torn, or a topic was truncated or written "
        f"by others. `mistakebound reset --to {model.epoch}:{version}` shows what it means to go on from what is "
        f"there and counted ({gone}), and with --execute does it"
    )


def _counted_version(log: Log, model: Model) -> list[int]:
    """Of each partition: the updates that are there and that `outcomes` counts."""
    version = []
    for partition, there in enumerate(model.updates):
        newest = newest_step(log, partition)
        counted = 0
        if (
            newest is not None
            and newest.outcomes.tallies is not None
            and newest.outcomes.model.epoch == model.epoch
        ):
            counted = newest.outcomes.tallies.epoch.updates
        version.append(min(there, counted))
    return version
