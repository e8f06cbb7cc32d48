"""`tail`: a topic's records as they come, committed ones only."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, LogUrl, Sets, opened, settings_of

if TYPE_CHECKING:
    from mistakebound.core.records import Record, Topic
    from mistakebound.log.protocol import Log


class Start(StrEnum):
    """Where to begin."""

    BEGINNING = "beginning"
    END = "end"


def tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Logical name, such as predictions.")],
    *,
    start: Annotated[Start, typer.Option("--from", help="Where to begin.")] = Start.END,
    count: Annotated[int | None, typer.Option("-c", "--count", min=1, help="Stop after so many.")] = None,
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
    from mistakebound.core.records import TOPICS

    known = next((one for one in TOPICS if one == topic), None)
    if known is None:
        raise CommandError(ExitCode.USAGE, f"no topic {topic!r}: choose one of {', '.join(TOPICS)}")
    settings = settings_of(config, sets, log)
    out = sys.stdout.buffer
    left = count
    try:
        with opened(settings) as reached:
            for batch in _followed(reached, known, start):
                for record in batch[:left]:
                    out.write(_line(record, whole=json))
                out.flush()
                if left is not None:
                    left -= min(left, len(batch))
                    if left == 0:
                        return
    except KeyboardInterrupt:
        # Ctrl-C is how this command is meant to end.
        return


def _followed(log: "Log", topic: "Topic", start: Start) -> "Iterator[list[Record]]":
    place = log.low_watermark if start is Start.BEGINNING else log.high_watermark
    starts = {(topic, partition): place(topic, partition) for partition in range(log.partitions)}
    for batch in log.follow(starts):
        yield list(batch)


def _line(record: "Record", *, whole: bool) -> bytes:
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
