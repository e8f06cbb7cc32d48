"""The demo's stream without an end and without a worker, for workers that run elsewhere."""

import itertools
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from mistakebound.commands.demo.pages import choose_partition, read_ends
from mistakebound.core.records import INPUTS, Outgoing, Topic
from mistakebound.core.replay.replay import Row, as_stream
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings

LATE_S = 10.0
"""How long after their examples the labels come by default."""


def repeat(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows again and again. Ids of later laps are new, since a worker predicts no id twice."""
    yield from rows
    for lap in itertools.count(2):
        for row in rows:
            yield row._replace(id=f"{row.id}-{lap}")


def produce(
    log: Log,
    settings: Settings,
    rows: Iterable[Row],
    examples_per_s: float,
    stop: threading.Event,
    *,
    late_s: float = LATE_S,
    topics: Collection[Topic] = INPUTS,
) -> None:
    """Send rows as examples and, `late_s` later, their labels, stamped with the time, until `stop`.

    The topics tell how far an earlier run came, so the next run first sends what that one left out. Records of
    other topics than `topics` take their time but are not sent. Raises what `log.append` raises.
    """
    ends = read_ends(log)
    outstanding = round(late_s * examples_per_s)
    for one in as_stream(rows, settings, log.partitions, outstanding, choose_partition):
        if stop.is_set():
            return
        if one.offset < ends[one.topic, one.partition]:
            continue
        if one.topic in topics:
            now_ms = round(time.time() * 1000)
            log.append([Outgoing(one.topic, one.partition, one.key, one.value, (), now_ms)])
        stop.wait(0.5 / examples_per_s)  # an example and a label make two records
