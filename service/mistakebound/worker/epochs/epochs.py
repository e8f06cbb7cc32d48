"""The epoch that a log is in: its settings fixed every result so far, and must not have changed.

The first worker begins epoch 1 in all partitions of `updates`, in one fenced transaction. Afterwards a
worker whose settings differ is refused; an epoch is never changed in place. `reset.py` begins the
next one.
"""

import random
import time
from collections.abc import Sequence

import structlog
from msgspec import UNSET, UnsetType

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import Epoch, encode, read_update
from mistakebound.core.model.model import first_epoch
from mistakebound.core.model.settings_diff import changes, setting_text
from mistakebound.core.records import Outgoing, Record
from mistakebound.log.newest import newest_record, newest_records
from mistakebound.log.oldest import from_oldest
from mistakebound.log.protocol import Fenced, Log, LogError, Refused
from mistakebound.settings import Settings
from mistakebound.worker.epochs.input_topics import input_topics

_log = structlog.get_logger(__name__)

ATTEMPTS = 10
REST_S = 1.0
LONGEST = 5
"""How often the longest rest doubles."""


def begin_first(log: Log, settings: Settings) -> None:
    """Begin epoch 1 if `updates` holds no record. Raises Refused when other workers keep coming in between,
    when topics are missing, or when `updates` was created anew."""
    partitions = log.partitions

    def decide() -> Sequence[Outgoing]:
        # In this order: work that others did after they had begun must not look like work without a beginning.
        worked = _worked(log)
        if _begun(log):
            return ()
        if worked is not None:
            raise Refused(
                f"`updates` holds nothing, but outcomes-{worked} holds work: `updates` was deleted, or made again; "
                "restore it, or take another log.prefix and replay the inputs there"
            )
        epoch = encode(first_epoch(settings, input_topics(log)))
        return [Outgoing("updates", p, None, epoch) for p in range(partitions)]

    for attempt in range(ATTEMPTS):
        if _begun(log):
            return
        try:
            log.exclusively(decide)
        except Fenced:
            # Another worker was quicker, or is still trying. Workers that start together would fence each
            # other again and again if they all tried again at the same moment, or, on a slow network, sooner
            # than one of them takes: so they rest longer and longer.
            _log.info("another_worker_begins_the_epoch", attempt=attempt + 1)
            time.sleep(random.uniform(0, REST_S * 2 ** min(attempt, LONGEST)))  # noqa: S311
    if not _begun(log):
        raise Refused(f"no epoch could be begun in {ATTEMPTS} attempts: other workers keep coming in between")


def epoch_without_waiting(log: Log) -> int | None:
    """The number of the newest epoch of which something is readable at once; 0 before the first, None where that is not known.

    For people: an open transaction in `updates`, for whose end a takeover waits, is not waited for. Raises nothing of the
    log's: whoever works on it will tell.
    """
    try:
        (newest,) = newest_records(log, "updates", 0, 1) or (None,)
        return 0 if newest is None else read_update(newest).epoch
    except (BadLog, LogError):
        return None


def _begun(log: Log) -> bool:
    # All partitions begin together, so one of them is enough to know.
    return next(from_oldest(log, "updates", 0), None) is not None


def _worked(log: Log) -> int | None:
    """A partition in which work was done; None where there is none."""
    partitions = range(log.partitions)
    return next((p for p in partitions if newest_record(log, "outcomes", p) is not None), None)


def refuse_changed(epoch: Epoch, settings: Settings) -> None:
    """Raises Refused, naming each key that differs, its two values and the remedy."""
    changed = changes(epoch.settings, settings.of_epoch())
    if changed:
        listed = "\n  ".join(
            f"{key} is {setting_text(now)}, the epoch has {setting_text(before, 'none')}"
            for key, before, now in changed
        )
        raise Refused(
            f"the settings differ from those of epoch {epoch.epoch}, which fixed every result in this log:\n"
            f"  {listed}\nSet them back; or begin the next epoch with them: `mistakebound reset` shows what that "
            "means, `mistakebound reset --execute` does it."
        )


def pointers_after(before: Epoch | None, settings: Settings) -> dict[str, str] | UnsetType:
    """What the epoch that follows `before` holds of `messages.*`.

    Nothing, where an earlier version's epoch held nothing and nothing is given: its workers may have been told more
    than whoever begins this one.
    """
    if before is not None and before.messages is UNSET and not settings.messages.model_fields_set:
        return UNSET
    return settings.messages.recorded()


def other_pointers(epoch: Epoch, settings: Settings) -> dict[str, str] | None:
    """`messages.*`, where they are others than the epoch began with, which is logged; else None."""
    now = settings.messages.recorded()
    if epoch.messages is UNSET or epoch.messages == now:
        return None
    then = epoch.messages
    changed = {
        f"messages.{name}": [then.get(name), now.get(name)]
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    }
    _log.warning("messages_changed", epoch=epoch.epoch, changed=changed)
    return now


def newest_number(log: Log) -> int:
    """The number of the epoch that a log is in; 0 before the first. Raises BadLog, Unreachable."""
    newest = _newest(log)[1]
    return 0 if newest is None else read_update(newest).epoch


def newest_epochs(log: Log) -> list[Epoch]:
    """The epoch that a log is in and the one before it, newest first, without those that do not exist or whose
    records were deleted. Found by bisection, not by reading all records. Raises BadLog, Unreachable."""
    partition, newest = _newest(log)
    if newest is None:
        return []
    number = read_update(newest).epoch
    found = (_first(log, partition, newest.offset, each) for each in (number, number - 1) if each > 0)
    return [epoch for epoch in found if epoch is not None]


def _newest(log: Log) -> tuple[int, Record | None]:
    """The shortest partition of `updates` that holds any, and its newest record."""
    ends = {p: log.high_watermark("updates", p) for p in range(log.partitions)}
    # Partitions that were added later are empty.
    partition = min((p for p in ends if ends[p]), key=ends.__getitem__, default=0)
    return partition, newest_record(log, "updates", partition)


def _first(log: Log, partition: int, end: int, number: int) -> Epoch | None:
    """The record that begins the epoch, at or below offset `end`. Epochs follow each other in the log."""
    low, high = log.low_watermark("updates", partition), end
    while low < high:
        middle = (low + high) // 2
        record = next(iter(log.read("updates", partition, middle)))
        if read_update(record).epoch < number:
            low = record.offset + 1
        else:
            high = middle
    message = read_update(next(iter(log.read("updates", partition, low))))
    return message if isinstance(message, Epoch) and message.epoch == number else None
