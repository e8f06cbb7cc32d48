"""`status`: how a log's work stands, read from the log itself, with no worker asked."""

from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.options import Config, Json, LogUrl, Sets, opened, settings_of

if TYPE_CHECKING:
    from mistakebound.core.messages.schema import Tally
    from mistakebound.core.reporting.report import Report
    from mistakebound.core.reporting.status import Behind
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings


def status(
    model: Annotated[
        bool, typer.Option("--model", help="Also fold `updates` and print the model's size and digest.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of --json, and of /api/status, instead.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Print tallies, lag and version from the committed offsets and the newest outcomes."""
    from mistakebound.commands import render_epochs as told
    from mistakebound.commands.output import as_json, table
    from mistakebound.commands.progress import summary
    from mistakebound.core.model.settings_diff import changes
    from mistakebound.core.reporting import status as told_status
    from mistakebound.worker.epochs.epochs import newest_epochs

    if schema:
        as_json(told_status.schema())
        return
    settings = settings_of(config, sets, log)
    with opened(settings) as reached:
        found = read(reached, settings, fold=model)
        lags = lag(reached)
        epochs = newest_epochs(reached)
    changed = changes(epochs[1].settings, epochs[0].settings) if len(epochs) > 1 else []
    if json:
        before = epochs[1] if len(epochs) > 1 else None
        epoch = told_status.epoch_status(epochs[0], before) if epochs else None
        as_json(told_status.status(found, lags, epoch).as_dict())
        return
    print(summary(found))
    if epochs:
        print(f"\nepoch {epochs[0].epoch}, from {told.start(epochs[0].base)}")
    for line in told.changed(changed):
        print(f"  {line}")
    print()
    rows = [(p, both.examples, both.labels) for p, both in lags.items()]
    print(table(("partition", "examples behind", "labels behind"), rows))


def read(log: "Log", settings: "Settings", *, fold: bool) -> "Report":
    """The report of everything committed. Raises Refused, BadLog, Unreachable."""
    from mistakebound.core.ledger.ledger import zero
    from mistakebound.core.messages.schema import read_outcomes
    from mistakebound.core.reporting.report import ModelSummary, PartitionCounts, report
    from mistakebound.core.reporting.report import summary as summary_of
    from mistakebound.core.theorems.claims import certificate, claims
    from mistakebound.log.newest import newest_record
    from mistakebound.worker.assignment import fold_updates
    from mistakebound.worker.epochs.epochs import newest_number

    counts: list[PartitionCounts] = []
    newest_tallies: list[tuple[int, Tally]] = []
    epoch, updates = newest_number(log), [0] * log.partitions
    for p in range(log.partitions):
        newest = newest_record(log, "outcomes", p)
        tallies = None if newest is None else read_outcomes(newest).tallies
        if newest is None or tallies is None:
            counts.append(PartitionCounts(zero(), 0, 0))
            continue
        life = tallies.life
        counts.append(PartitionCounts(life, _held(life.examples), _held(life.labels)))
        worked_in = read_outcomes(newest).model.epoch
        updates[p] = tallies.epoch.updates if worked_in == epoch else 0
        newest_tallies.append((worked_in, tallies.epoch))
    if not fold:
        return report(
            counts, settings.learner.kind, ModelSummary(epoch, tuple(updates), window=settings.learner.window)
        )
    model = fold_updates(log, settings, None).model
    of_epoch = [tally for number, tally in newest_tallies if number == model.epoch]
    return report(
        counts, settings.learner.kind, summary_of(model), claims(model, of_epoch), certificate(model)
    )


def _held(counts: dict[str, int]) -> int:
    return counts["consumed"] - sum(count for name, count in counts.items() if name != "consumed")


def lag(log: "Log") -> "dict[int, Behind]":
    """Input offsets not yet committed, by partition and topic (transaction markers count too)."""
    from mistakebound.core.records import INPUTS
    from mistakebound.core.reporting.status import Behind

    committed = log.group_positions()
    found: dict[int, Behind] = {}
    for p in range(log.partitions):
        position = committed.get(p)
        behind: dict[str, int] = {}
        for topic in INPUTS:
            start = log.low_watermark(topic, p) if position is None else getattr(position, topic)
            behind[topic] = max(0, log.high_watermark(topic, p) - start)
        found[p] = Behind(**behind)
    return found
