"""The next epoch: what it would change, and how it begins, in one transaction that shuts out older work.

The group's only member writes the epoch's record to every partition of `updates` and, in the same
transaction, the positions as they are. A worker that was paused before is of an older generation, so it
cannot commit any more. Nothing is deleted; the older epochs stay in the log.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import FORMAT, Base, Epoch, encode, read_update
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.settings_diff import Change, changes, setting_text
from mistakebound.core.records import Outgoing, Position, Topic, Transaction
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Fenced, Log, Refused, Session, StaleGeneration, TransactionFailed
from mistakebound.settings import Settings
from mistakebound.worker.epochs.epochs import pointers_after
from mistakebound.worker.epochs.input_topics import input_topics, refuse_other_topics

SLOT = "reset"
ATTEMPTS = 4
"""A worker that was fenced joins again once, then ends."""
POLL_S = 0.5
LEAVE_S = 5.0
_WORK: tuple[Topic, ...] = ("predictions", "outcomes")


Positions = Mapping[int, Position | None]


@dataclass(frozen=True, slots=True)
class History:
    """The epochs in `updates`."""

    epochs: Mapping[int, Epoch]
    updates: Mapping[int, Sequence[int]]
    """Epoch -> its number of updates in each partition."""

    @property
    def newest(self) -> Epoch:
        """The present epoch."""
        return self.epochs[max(self.epochs)]


@dataclass(frozen=True, slots=True)
class Plan:
    """The epoch that would begin, and what the log holds before it."""

    history: History
    begins: Epoch

    @property
    def follows(self) -> Epoch:
        """The present epoch, after which the new one would begin."""
        return self.history.newest

    @property
    def changes(self) -> list[Change]:
        """The settings that differ."""
        return changes(self.follows.settings, self.begins.settings)

    def given_up(self) -> Mapping[int, Sequence[int]]:
        """Epoch -> how many updates of each partition count now and would no longer count in the next epoch."""
        own = self.history.updates[self.follows.epoch]
        nothing = [0] * len(own)
        now = _counting(self.history, self.follows, own)
        then = _counting(self.history, self.begins, nothing)
        return {
            epoch: [max(0, a - b) for a, b in zip(counts, then.get(epoch, nothing), strict=True)]
            for epoch, counts in now.items()
        }


def _counting(history: History, epoch: Epoch, own: Sequence[int]) -> dict[int, Sequence[int]]:
    """Epoch -> how many of its updates count in `epoch`, whose own updates are `own`."""
    counting: dict[int, Sequence[int]] = {epoch.epoch: own}
    base = epoch.base
    while base is not None:
        counting[base.epoch] = base.updates
        base = history.epochs[base.epoch].base
    return counting


def history(log: Log) -> History | None:
    """Read all of `updates`; None if no epoch has begun. Raises Refused, BadLog, Unreachable."""
    epochs: dict[int, Epoch] = {}
    updates: dict[int, list[int]] = {}
    for p in range(log.partitions):
        start = log.low_watermark("updates", p)
        if start > 0:
            raise Refused(
                f"updates-{p} starts at offset {start}: its first updates were deleted, and no worker could "
                "fold a new epoch; take another log.prefix and replay the inputs there"
            )
        for record in log.read("updates", p, start):
            message = read_update(record)
            if isinstance(message, Epoch):
                epochs.setdefault(message.epoch, message)
            counts = updates.setdefault(message.epoch, [0] * log.partitions)
            if not isinstance(message, Epoch):
                counts[p] = max(counts[p], message.n)
    return History(epochs, updates) if epochs else None


def planned(log: Log, settings: Settings, base: Base | None, *, same_records: bool = False) -> Plan | None:
    """The plan for an epoch of these settings; None if no epoch has begun yet, so that none can follow.

    `base.epoch` 0 means the present epoch. `same_records`: the inputs may be other topics than before, the operator
    says that they hold the same. Raises Refused if it cannot begin; BadLog, Unreachable.
    """
    found = history(log)
    if found is None:
        return None
    if not same_records:
        refuse_other_topics(log, found.newest)
    number = found.newest.epoch
    if base is not None:
        base = Base(base.epoch or number, base.updates)
        _must_exist(base, found, log.partitions)
    pointers = pointers_after(found.newest, settings)
    begins = Epoch(number + 1, FORMAT, dict(settings.of_epoch()), base, input_topics(log), pointers)
    plan = Plan(found, begins)
    if base is not None:
        _must_be_readable(log, settings, plan)
    return plan


def _must_exist(base: Base, found: History, partitions: int) -> None:
    if base.epoch not in found.epochs:
        listed = ", ".join(map(str, sorted(found.epochs)))
        raise Refused(f"there is no epoch {base.epoch} to start from; there are: {listed}")
    if len(base.updates) != partitions:
        raise Refused(
            f"the version {_render(base)} names {len(base.updates)} partitions, the log has {partitions}; "
            "give one number of updates for each, such as `--to " + ",".join(["0"] * partitions) + "`"
        )
    there = found.updates[base.epoch]
    for p, (wanted, most) in enumerate(zip(base.updates, there, strict=True)):
        if wanted > most:
            raise Refused(
                f"the version {_render(base)} goes beyond what exists: partition {p} has {most} updates of "
                f"epoch {base.epoch}, not {wanted}"
            )


def _must_be_readable(log: Log, settings: Settings, plan: Plan) -> None:
    """Fold the updates that the epoch would start from, as each worker will."""
    base = plan.begins.base
    assert base is not None
    fold = Fold(settings, log.partitions, [*plan.history.epochs.values(), plan.begins])
    try:
        for p in range(log.partitions):
            fold.fold(p, log.read("updates", p, 0))
    except BadLog as error:
        listed = "".join(
            f"\n  {each.key} would be {setting_text(each.after)}, epoch {base.epoch} has {setting_text(each.before, 'none')}"
            for each in changes(plan.history.epochs[base.epoch].settings, plan.begins.settings)
        )
        raise Refused(f"{error}{listed}") from None


def _render(base: Base) -> str:
    return f"{base.epoch}:{','.join(map(str, base.updates))}"


def execute(log: Log, settings: Settings, plan: Plan, wait_s: float) -> None:
    """Begin the epoch of `plan`, which was made of these settings.

    Waits at most `wait_s` for the group. Raises Refused where others are in it, or the log has moved on;
    Fenced, TransactionFailed when others keep coming in between; BadLog, Unreachable.
    """

    def begin(session: Session, generation: int, positions: Positions, again: bool) -> None:
        if _has_begun(log, plan.begins, plan.follows, again=again):
            return
        value = encode(plan.begins)
        records = [Outgoing("updates", p, None, value) for p in range(log.partitions)]
        write(log, session, generation, records, plan.follows, plan.begins, positions)

    as_only_member(log, settings, wait_s, begin)


def as_only_member(
    log: Log, settings: Settings, wait_s: float, act: Callable[[Session, int, Positions, bool], None]
) -> None:
    """Join the group, make sure to own every partition, and call `act(session, generation, positions, again)`.

    `again`: an earlier attempt may have been committed although its answer was lost. Raises what `act`
    raises, and Fenced, TransactionFailed when others keep coming in between.
    """
    for attempt in range(ATTEMPTS):
        session = log.join(SLOT)
        try:
            generation = alone(session, log.partitions, wait_s)
            positions = session.committed(range(log.partitions))
            must_not_be_lost(log, settings, positions)
            act(session, generation, positions, attempt > 0)
            return
        except (Fenced, TransactionFailed):
            if attempt == ATTEMPTS - 1:
                raise
        except StaleGeneration:
            raise Refused("another worker joined the group meanwhile: stop it, then try again") from None
        finally:
            session.close(LEAVE_S)


def alone(session: Session, partitions: int, wait_s: float) -> int:
    """The generation in which we own all partitions. Raises Refused when we do not get them in time."""
    deadline = time.monotonic() + wait_s
    while True:
        polled = session.poll(POLL_S)
        if len(polled.partitions) == partitions:
            return polled.generation
        if time.monotonic() > deadline:
            raise Refused(
                f"only {len(polled.partitions)} of {partitions} partitions were given to this command within "
                f"{wait_s:g} s: other workers of the group are running; stop them first"
            )


def must_not_be_lost(log: Log, settings: Settings, positions: Positions) -> None:
    """Raises Refused where the outputs hold work but the group's position is lost."""
    for p, position in positions.items():
        if position is None and any(newest_record(log, topic, p) is not None for topic in _WORK):
            raise Refused(
                f"the group {settings.group!r} has no committed offset for partition {p}, but its outputs hold "
                "work: the offsets were lost, or the group was renamed; `mistakebound run "
                "--resume-from-outcomes` with the settings of the present epoch first"
            )


def write(
    log: Log,
    session: Session,
    generation: int,
    records: Sequence[Outgoing],
    follows: Epoch | None,
    newest: Epoch,
    positions: Positions,
) -> None:
    """Write the records, the last of which begin the epoch `newest` after `follows`; positions stay the same."""
    known = {p: position for p, position in positions.items() if position is not None}
    if known:
        session.commit(Transaction(records, known), generation)
        return

    # No work yet, so there is no position to fence with; still, older generations must be shut out.
    def decide() -> Sequence[Outgoing]:
        if session.poll(0.0).generation != generation:
            raise StaleGeneration("the group has moved on")
        return () if _has_begun(log, newest, follows) else records

    log.exclusively(decide)


def _has_begun(log: Log, begins: Epoch, follows: Epoch | None, *, again: bool = True) -> bool:
    """Whether an earlier attempt was committed and only its answer was lost. Raises Refused for any other new epoch."""
    found = history(log)
    newest = None if found is None else found.newest
    if again and newest == begins:
        return True
    if newest != follows:
        raise Refused("another epoch has begun since the plan was made; look at the plan again")
    return False
