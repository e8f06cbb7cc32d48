"""What a person should know at once, one sentence each.

The worst comes first. The numbers show the same; nothing here changes what the worker does.
"""

from collections.abc import Iterator, Sequence

from mistakebound.core.messages.dead_letters import SHOWN_BY
from mistakebound.core.model.model import WINDOW
from mistakebound.core.reporting.report import Report
from mistakebound.core.reporting.status import CheckpointStatus, History, Notice, PartitionStatus
from mistakebound.core.theorems.claims import ROUNDING, Bound
from mistakebound.worker.health import Health
from mistakebound.worker.http.drift import drift
from mistakebound.worker.http.history import since

ENOUGH = 20
"""Examples without a label, or records that could not be read, that are worth a word."""
SILENT_S = 10
"""How long examples must come without a label before a notice says so."""
APART_S = 10
"""Less between two clocks is not worth a word."""


def notices(
    health: Health,
    bounds: Sequence[Bound],
    margins: tuple[float | None, float | None, float | None],
    partitions: Sequence[PartitionStatus],
    history: Sequence[History],
    checkpoint: CheckpointStatus | None,
    started_s: float,
    now_s: float,
    report: Report,
) -> tuple[Notice, ...]:
    """`margins`: the declared one, and the upper bounds on all updates and on the newest. `history`: finest first,
    of a process that began at `started_s`."""
    found = [
        *_health(health),
        *_bounds(bounds, *margins),
        *_changes(report),
        *_drift(history, now_s),
        *_unreadable(report),
        *_labels(partitions, history, started_s, now_s),
        *_checkpoint(checkpoint),
        *_majority(report),
    ]
    return tuple(sorted(found, key=lambda notice: ("alarm", "warning", "info").index(notice.level)))


def _health(health: Health) -> Iterator[Notice]:
    if not health.live:
        yield Notice("alarm", _sentence(health.reason))
    elif not health.ready:
        yield Notice("alarm" if health.misplaced_labels else "warning", _sentence(health.reason))


def _bounds(
    bounds: Sequence[Bound], declared: float | None, most: float | None, newest: float | None
) -> Iterator[Notice]:
    for bound in bounds:
        if not bound.holds:
            yield Notice(
                "alarm",
                f"{bound.count:,} {bound.of} exceed the {bound.name} bound of {bound.value:,.4g}: what was declared "
                "about the data does not hold.",
            )
    for whose, found in (("updates", most), ("newest updates", newest)):
        if declared is not None and found is not None and found * ROUNDING < declared:
            yield Notice(
                "warning",
                f"The {whose} prove that no separator has the declared margin {declared:.4g}; the largest "
                f"possible is {found:.4g}.",
            )
            return


def _changes(report: Report) -> Iterator[Notice]:
    """A change that was proved within the newest updates of its partition: whoever looks later has the count."""
    proved = report.proved_changes
    for one in () if proved is None else proved.newest:
        since = report.model.updates[one.partition] - one.update
        if since < WINDOW:
            yield Notice(
                "warning",
                f"A change of the stream is proved: no separator of the declared margin fits updates {one.first:,} to "
                f"{one.update:,} of partition {one.partition}.",
            )


def _drift(history: Sequence[History], now_s: float) -> Iterator[Notice]:
    found = drift(history)
    if found is not None:
        yield Notice(
            "alarm",
            f"Mistakes are up: {_percent(found.mistakes, found.labelled)} of the labels of the last "
            f"{duration(now_s - found.since_s)}, against {_percent(found.mistakes_before, found.labelled_before)} "
            "before. The data may have drifted.",
        )


def _unreadable(report: Report) -> Iterator[Notice]:
    """Settings that do not fit the records, mostly: a few bad ones among many are for the metrics."""
    for stream, invalid, consumed in (
        ("examples", report.example_outcomes["invalid"], report.examples),
        ("labels", report.labels["invalid"], report.labels["consumed"]),
    ):
        if consumed >= ENOUGH and 2 * invalid > consumed:
            yield Notice(
                "warning",
                f"{invalid:,} of {consumed:,} {stream} could not be read. The reasons: {SHOWN_BY}.",
            )


def _labels(
    partitions: Sequence[PartitionStatus], history: Sequence[History], started_s: float, now_s: float
) -> Iterator[Notice]:
    """Whether labels stopped, or never came. If they never came, they may only be late."""
    ends = (one.at[index] + one.seconds for one in history if (index := _last(one.labelled)) is not None)
    ended_s = next(ends, None)  # by the finest ring that still knows a label
    last_s = started_s if ended_s is None else min(ended_s, now_s)
    waiting = sum(each.waiting for each in partitions)
    examples, _, _ = since(history[0], last_s)
    if not waiting or now_s - last_s < SILENT_S or examples < ENOUGH:
        return
    left = f"{waiting:,} examples wait, the oldest for {_oldest(partitions, now_s)}."
    silence = duration(now_s - last_s)
    if ended_s is None:
        yield Notice("info", f"No label in the {silence} since this worker started; {left}")
    else:
        yield Notice("warning", f"No label for {silence}, while {examples:,} examples came; {left}")


def _oldest(partitions: Sequence[PartitionStatus], now_s: float) -> str:
    """Its age by both clocks, where they differ: while no record comes, record time stands still."""
    age_s = max((each.oldest_waiting_seconds or 0.0 for each in partitions), default=0.0)
    since_s = min(
        (each.oldest_waiting_at for each in partitions if each.oldest_waiting_at is not None), default=None
    )
    if since_s is None or abs(now_s - since_s - age_s) < APART_S:
        return duration(age_s)
    return f"{duration(now_s - since_s)} by the clock and {duration(age_s)} by record time"


def _last(counts: Sequence[int]) -> int | None:
    """Index of the last count that is not 0."""
    return next((index for index in reversed(range(len(counts))) if counts[index]), None)


def _checkpoint(checkpoint: CheckpointStatus | None) -> Iterator[Notice]:
    if checkpoint is not None and checkpoint.failures and checkpoint.pending_updates:
        yield Notice(
            "warning",
            f"{checkpoint.failures} checkpoints could not be written; nothing is lost, but a restart takes longer.",
        )


def _majority(report: Report) -> Iterator[Notice]:
    if report.worse_than_majority:
        yield Notice(
            "warning",
            f"Worse than always the majority: {report.mistakes:,} mistakes in {report.labelled:,} labels for life, "
            f"where always predicting the most frequent class so far makes {report.baselines['majority'].mistakes:,}. "
            "Compare learners and settings with mistakebound replay.",
        )


def duration(seconds: float) -> str:
    """As a person would say it, in one unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:] + "."
