"""`tail`: a topic's committed records as they come."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from mistakebound.commands.options import Config, LogUrl, Sets, choose_topic, open_log, read_settings

if TYPE_CHECKING:
    from mistakebound.core.records import Record


def tail(
    topic: Annotated[
        str, Argument(metavar="TOPIC", help="Logical name, such as predictions, whatever the log calls it.")
    ],
    *,
    start: Annotated[Literal["beginning", "end"], Option("--from", help="Where to begin.")] = "end",
    count: Annotated[
        int | None, Option("-c", "--count", min=1, metavar="N", help="Stop after this many.")
    ] = None,
    json: Annotated[
        bool, Option("--json", help="Print partition, offset, time, key and headers too.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Print a topic's messages as they come.

    One JSON object a line, committed records only, until Ctrl-C.
    """
    from mistakebound.core.records import TOPICS

    settings = read_settings(config, sets, log)
    chosen = choose_topic("TOPIC", topic, TOPICS, settings)
    out = sys.stdout.buffer
    left = count
    with open_log(settings) as reached:
        watermark = reached.low_watermark if start == "beginning" else reached.high_watermark
        starts = {(chosen, p): watermark(chosen, p) for p in range(reached.partitions)}
        try:
            for batch in reached.follow(starts):
                for record in batch[:left]:
                    out.write(_render(record, whole=json))
                out.flush()
                if left is not None:
                    left -= min(left, len(batch))
                    if left == 0:
                        return
        except KeyboardInterrupt:
            return  # Ctrl-C is how this command is meant to end


def _render(record: "Record", *, whole: bool) -> bytes:
    """The value where it is JSON on one line; else, or if `whole`, the record in the recording's form.

    What is not JSON may hold anything, terminal commands included: the recording's form escapes it.
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
