"""`tail`: a topic's records as they come, committed ones only."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mistakebound.commands.options import Config, LogUrl, Sets, open_log, read_settings

if TYPE_CHECKING:
    from mistakebound.core.records import Record, Topic
    from mistakebound.log.protocol import Log


def tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Logical name, such as predictions.")],
    *,
    start: Annotated[Literal["beginning", "end"], typer.Option("--from", help="Where to begin.")] = "end",
    count: Annotated[int | None, typer.Option("-c", "--count", min=1, help="Stop after this many.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print partition, offset, time, key and headers too.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Print a topic's messages as they come.

    One JSON object a line, committed records only, until Ctrl-C.
    """
    from mistakebound.commands.choices import choose
    from mistakebound.core.records import TOPICS

    chosen = choose("TOPIC", topic, TOPICS)
    settings = read_settings(config, sets, log)
    out = sys.stdout.buffer
    left = count
    try:
        with open_log(settings) as reached:
            for batch in _follow(reached, chosen, from_low=start == "beginning"):
                for record in batch[:left]:
                    out.write(_render(record, whole=json))
                out.flush()
                if left is not None:
                    left -= min(left, len(batch))
                    if left == 0:
                        return
    except KeyboardInterrupt:
        # Ctrl-C is how this command is meant to end.
        return


def _follow(log: "Log", topic: "Topic", *, from_low: bool) -> "Iterator[list[Record]]":
    watermark = log.low_watermark if from_low else log.high_watermark
    starts = {(topic, partition): watermark(topic, partition) for partition in range(log.partitions)}
    for batch in log.follow(starts):
        yield list(batch)


def _render(record: "Record", *, whole: bool) -> bytes:
    """The value where it is JSON on one line, else (or `whole`) the record as recordings write it.

    What is not JSON may hold anything, terminal commands included; the recording's form escapes it.
    """
    import json

    from mistakebound.core.replay.recording import encode

    value = record.value
    if whole or value is None or b"\n" in value or b"\r" in value:
        return encode(record)
    try:
        json.loads(value.decode("utf-8"))
    except ValueError:
        return encode(record)
    return value + b"\n"
