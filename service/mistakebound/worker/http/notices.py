"""What a person should know at once, one sentence each.

The worst comes first. The numbers show the same; nothing here changes what the worker does.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import sqrt

from mistakebound.core.reporting.status import CheckpointStatus, History, Notice, PartitionStatus
from mistakebound.core.theorems.claims import Bound
from mistakebound.worker.health import Health
from mistakebound.worker.http.history import since

RECENT_S = ((0, 10), (0, 60), (1, 1_800))
"""(ring, its newest seconds), compared with everything before them: fast streams show a drift sooner."""
ENOUGH = 20
"""Labels that a comparison needs on each side."""
SIGMAS = 5.0
"""High enough that a day of comparisons should give no false alarm."""
SILENT_S = 10
"""How long examples must come without a label before a notice says so."""


def notices(
    health: Health,
    bounds: Sequence[Bound],
    margins: tuple[float | None, float | None],
    partitions: Sequence[PartitionStatus],
    history: Sequence[History],
    checkpoint: CheckpointStatus | None,
    started_s: float,
    now_s: float,
) -> tuple[Notice, ...]:
    """`margins`: the declared one, and the upper bound on the newest updates. `history`: finest first, of a
    process that began at `started_s`."""
    found = [
        *_health(health),
        *_bounds(bounds, *margins),
        *islice(_drifts(history, now_s), 1),
        *_labels(partitions, history, started_s, now_s),
        *_checkpoint(checkpoint),
    ]
    return tuple(sorted(found, key=lambda notice: ("alarm", "warning", "info").index(notice.level)))


def _health(health: Health) -> Iterator[Notice]:
    if not health.live:
        yield Notice("alarm", _sentence(health.reason))
    elif not health.ready:
        yield Notice("alarm" if health.misplaced_labels else "warning", _sentence(health.reason))


def _bounds(bounds: Sequence[Bound], declared: float | None, most: float | None) -> Iterator[Notice]:
    for bound in bounds:
        if not bound.holds:
            yield Notice(
                "alarm",
                f"{bound.count:,} {bound.of} exceed the {bound.name} bound of {bound.value:,.4g}: what was declared "
                "about the data does not hold.",
            )
    if declared is not None and most is not None and most < declared:
        yield Notice(
            "warning",
            f"The newest updates prove that no separator has the declared margin {declared:.4g}; the largest "
            f"possible is {most:.4g}.",
        )


def _drifts(history: Sequence[History], now_s: float) -> Iterator[Notice]:
    """More mistakes than the earlier rate makes likely, by five standard deviations and two mistakes."""
    for ring, recent_s in RECENT_S:
        _, labelled, mistakes = since(history[ring], now_s - recent_s)
        _, whole, whole_mistakes = since(history[ring], 0)
        before, before_mistakes = whole - labelled, whole_mistakes - mistakes
        if labelled < ENOUGH or before < ENOUGH:
            continue
        rate = before_mistakes / before
        if mistakes > labelled * rate + SIGMAS * sqrt(labelled * rate * (1 - rate)) + 2:
            yield Notice(
                "alarm",
                f"Mistakes are up: {_percent(mistakes, labelled)} of the labels of the last {duration(recent_s)}, "
                f"against {_percent(before_mistakes, before)} before. The data may have drifted.",
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
    oldest_s = max((each.oldest_waiting_seconds or 0.0 for each in partitions), default=0.0)
    left = f"{waiting:,} examples wait, the oldest for {duration(oldest_s)}."
    silence = duration(now_s - last_s)
    if ended_s is None:
        yield Notice("info", f"No label in the {silence} since this worker started; {left}")
    else:
        yield Notice("warning", f"No label for {silence}, while {examples:,} examples came; {left}")


def _last(counts: Sequence[int]) -> int | None:
    """Index of the last count that is not 0."""
    return next((index for index in reversed(range(len(counts))) if counts[index]), None)


def _checkpoint(checkpoint: CheckpointStatus | None) -> Iterator[Notice]:
    if checkpoint is not None and checkpoint.failures and checkpoint.pending_updates:
        yield Notice(
            "warning",
            f"{checkpoint.failures} checkpoints could not be written; nothing is lost, but a restart takes longer.",
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
