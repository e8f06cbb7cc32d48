"""A warm start: labelled data learned beforehand, in an epoch of its own on which the next one is based.

One transaction of the group's only member holds the seed epoch's record, its updates (marked `seed`), the
record of the epoch that goes on from them, and the positions as they are. So the next epoch's n, clock and
tallies begin at zero, and no seed is ever counted as a mistake or as an update of the stream. To a worker that
folds the log, or was paused meanwhile, this looks like a `reset` to a version. What was learned before stays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import FORMAT, Base, Epoch, Update, encode, read_update
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.settings_diff import going_on
from mistakebound.core.records import OUTPUTS, Outgoing, Record
from mistakebound.core.replay.rejections import RowRejections
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.core.reporting.report import Rejected
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.log.protocol import Log, Refused, Session
from mistakebound.settings import PredictionSettings, Settings
from mistakebound.worker.epochs.epochs import pointers_after, refuse_changed
from mistakebound.worker.epochs.input_topics import input_topics, refuse_other_topics
from mistakebound.worker.epochs.reset import History, Positions, as_only_member, history, write


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """What would be written."""

    history: History | None
    """What the log held when the plan was made."""
    seeds: Epoch
    begins: Epoch
    updates: Sequence[Sequence[Update]]
    """By partition."""
    labelled: int
    """Rows that were learned from, or predicted correctly already."""
    unread: int
    """Rows that could not be read, or whose id came twice."""
    rejected: tuple[Rejected, ...] = ()
    """Why."""

    def records(self) -> list[Outgoing]:
        """In the order of each partition: the epoch of the seeds, the seeds, the epoch that goes on."""
        found = []
        for p, updates in enumerate(self.updates):
            found.append(Outgoing("updates", p, None, encode(self.seeds)))
            found += [Outgoing("updates", p, one.id.encode(), encode(one)) for one in updates]
            found.append(Outgoing("updates", p, None, encode(self.begins)))
        return found


def planned(log: Log, settings: Settings, rows: Iterable[Row]) -> SeedPlan:
    """Learn from the rows, one by one and without delay, on top of what the log's model has already learned.

    Raises Refused where the log's epoch has other settings; BadLog, Unreachable.
    """
    found = history(log)
    epochs = dict(found.epochs) if found is not None else {}
    base = None
    if found is not None:
        settings = going_on(settings, found.newest.settings)
        refuse_changed(found.newest, settings)
        refuse_other_topics(log, found.newest)
        own = list(found.updates[found.newest.epoch])
        if any(own) or found.newest.base is not None:
            base = Base(found.newest.epoch, own)
    topics, pointers = input_topics(log), pointers_after(None if found is None else found.newest, settings)
    seeds = Epoch(max(epochs, default=0) + 1, FORMAT, dict(settings.of_epoch()), base, topics, pointers)
    partitions = log.partitions
    fold = Fold(settings, partitions, [*epochs.values(), seeds])
    for p in range(partitions):
        fold.fold(p, log.read("updates", p, 0))
    fold.must_be_whole()
    updates: list[list[Update]] = [[] for _ in range(partitions)]

    rejections = RowRejections(partitions)

    def collect(step: Step) -> None:
        rejections.see(step)
        for one in step.transaction.outputs:
            if one.topic == "updates":
                update = read_update(Record(one.topic, one.partition, 0, 0, one.key, one.value))
                assert isinstance(update, Update)
                updates[one.partition].append(replace(update, seed=True))

    limits = SizeLimits(**{topic.replace("-", "_"): log.max_record_bytes(topic) for topic in OUTPUTS})
    ledgers = {p: Ledger(settings.labels) for p in range(partitions)}
    fold.model.begin()
    plain = {  # these labels are all there: none need be asked for
        "labels": settings.labels.model_copy(update={"ask": None}),
        "predictions": PredictionSettings(),
    }
    state = State(settings.model_copy(update=plain), fold.model, ledgers, limits)
    replay_rows(rejections.numbered(rows), settings, partitions, taken=collect, state=state)
    examples = [ledger.tallies.life.examples for ledger in ledgers.values()]
    labelled = sum(one["labelled"] for one in examples)
    begins = Epoch(
        seeds.epoch + 1,
        FORMAT,
        seeds.settings,
        Base(seeds.epoch, [len(one) for one in updates]),
        topics,
        pointers,
    )
    consumed = sum(one["consumed"] for one in examples)
    return SeedPlan(found, seeds, begins, updates, labelled, consumed - labelled, rejections.found())


def execute(log: Log, settings: Settings, plan: SeedPlan, wait_s: float) -> None:
    """Write what was planned with these settings.

    Waits at most `wait_s` for the group. Raises Refused where others are in it, or the log has moved on;
    Fenced, TransactionFailed when others keep coming in between; BadLog, Unreachable.
    """

    def seed(session: Session, generation: int, positions: Positions, again: bool) -> None:
        now = history(log)
        if again and now is not None and now.newest == plan.begins:
            return  # the previous attempt was committed, and only its answer was lost
        if now != plan.history:
            raise Refused(
                "the model has learned, or an epoch has begun, since the seeds were made: stop all workers, "
                "then try again"
            )
        follows = None if now is None else now.newest
        write(log, session, generation, plan.records(), follows, plan.begins, positions)

    as_only_member(log, settings, wait_s, seed)
