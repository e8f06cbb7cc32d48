"""What was done on a log and what is left, from what was committed to it: no worker is needed."""

from mistakebound.core.messages.schema import read_outcomes
from mistakebound.core.messages.tallies import Tally, zero
from mistakebound.core.records import INPUTS, Topic
from mistakebound.core.reporting.report import ModelSummary, PartitionCounts, Report, report, summary
from mistakebound.core.reporting.status import Behind
from mistakebound.core.theorems.claims import certificate, claims
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.epochs.epochs import newest_number
from mistakebound.worker.takeover import fold_updates


def read_report(log: Log, settings: Settings, *, fold: bool) -> Report:
    """The report of everything committed; the model's size and bounds only where `fold`.

    Raises Refused, BadLog, Unreachable.
    """
    counts: list[PartitionCounts] = []
    newest_tallies: list[tuple[int, Tally]] = []
    epoch, updates = newest_number(log), [0] * log.partitions
    for p in range(log.partitions):
        newest = newest_record(log, "outcomes", p)
        outcomes = None if newest is None else read_outcomes(newest)
        if outcomes is None or outcomes.tallies is None:
            counts.append(PartitionCounts(zero(), 0, 0))
            continue
        life, worked_in = outcomes.tallies.life, outcomes.model.epoch
        counts.append(PartitionCounts(life, _undecided(life.examples), _undecided(life.labels)))
        updates[p] = outcomes.tallies.epoch.updates if worked_in == epoch else 0
        newest_tallies.append((worked_in, outcomes.tallies.epoch))
    learner = settings.learner
    if not fold:
        return report(counts, learner.kind, ModelSummary(epoch, tuple(updates), window=learner.window))
    model = fold_updates(log, settings, None).model
    of_epoch = [tally for number, tally in newest_tallies if number == model.epoch]
    return report(counts, learner.kind, summary(model), claims(model, of_epoch), certificate(model))


def _undecided(counts: dict[str, int]) -> int:
    """How many of the inputs consumed have no outcome yet."""
    return counts["consumed"] - sum(count for name, count in counts.items() if name != "consumed")


def read_lag(log: Log) -> dict[int, Behind]:
    """How far each input is ahead of what was committed; 0 where no record is left to read."""
    committed = log.group_positions()
    ends = log.stable_ends([(topic, p) for topic in INPUTS for p in range(log.partitions)])

    def behind(topic: Topic, p: int) -> int:
        low, end, position = log.low_watermark(topic, p), ends[topic, p], committed.get(p)
        start = low if position is None else getattr(position, topic)
        if start >= end or start < low:  # nothing is left, or some of it was deleted unread
            return max(0, end - start)
        # The committed offset is the one after the last record: what lies behind may be markers and aborted records.
        first = next(iter(log.read(topic, p, start, end)), None)
        return 0 if first is None else end - first.offset

    return {p: Behind(behind("examples", p), behind("labels", p)) for p in range(log.partitions)}
