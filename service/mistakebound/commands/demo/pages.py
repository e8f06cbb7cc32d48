"""The demo's pages as a stream, and the part of it that the topics do not hold yet."""

import io
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from mistakebound.commands.input_files import InputFile
from mistakebound.commands.labelled_files.labelled_file import LabelledFile
from mistakebound.core.records import INPUTS, Outgoing, Record, Topic
from mistakebound.core.replay.replay import Row, as_stream
from mistakebound.log.newest import newest_record
from mistakebound.log.partitioner import partition_of
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import LabelSettings, Settings

OUTSTANDING = 20
"""Labels come this many examples late."""
SPACING_MS = 500
"""Record time between two records: labels are about 20 s late."""
CHUNK = 50


def read_pages() -> list[Row]:
    """The pages, in file order."""
    pages = (files("mistakebound.commands.demo") / "data/phishing.csv").read_bytes()
    return list(LabelledFile(InputFile("phishing.csv", io.BytesIO(pages)), "csv", LabelSettings()))


def flip(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows with the opposite labels: what was learned is wrong from here on."""
    for row in rows:
        yield row._replace(label=not row.label)


def choose_partition(number: int, key: bytes, partitions: int) -> int:  # noqa: ARG001 - as `as_stream` calls it
    """Where a producer of the worker's own kind would put the key."""
    return partition_of(key, partitions)


def read_ends(log: Log) -> dict[tuple[Topic, int], int]:
    """Where each input's partitions end, which tells how far an earlier run came."""
    return {(topic, p): log.high_watermark(topic, p) for topic in INPUTS for p in range(log.partitions)}


def must_be_the_demos(log: Log, settings: Settings) -> None:
    """Raises Refused where an input topic's oldest or newest records are not the demo's: its pages do not belong there."""
    pages = {row.id: row for row in read_pages()}
    for topic in INPUTS:
        for p in range(log.partitions):
            oldest = next(iter(log.read(topic, p, log.low_watermark(topic, p))), None)
            for record in (oldest, newest_record(log, topic, p)):
                if record is not None and not _is_the_demos(record, pages, settings):
                    name = settings.topic_name(topic)
                    raise Refused(
                        f"{name}-{p} of {settings.log.url} holds records that are not the demo's (offset "
                        f"{record.offset}, key {record.key!r}), and its web pages do not belong among them: leave "
                        "--log out, or give the demo a prefix that nobody uses, --set log.prefix=NAME. --yes"
                    )


def _is_the_demos(record: Record, pages: Mapping[str, Row], settings: Settings) -> bool:
    """Whether the demo sends such a record, in this lap or a later one, with the true label or the opposite."""
    key = (record.key or b"").decode(errors="replace")
    first, _, lap = key.rpartition("-")
    page = pages.get(key) or (pages.get(first) if lap.isdecimal() else None)
    if page is None:
        return False
    rows = (page._replace(id=key, label=label) for label in (True, False))
    sent = (one for row in rows for one in as_stream([row], settings, 1, 0))
    return any((one.topic, one.value) == (record.topic, record.value) for one in sent)


def send(log: Log, records: Iterable[Outgoing], examples_per_s: float, stop: threading.Event) -> bool:
    """Send these, at full speed if the rate is 0. Returns whether all were sent."""
    chunk: list[Outgoing] = []
    for record in records:
        chunk.append(record)
        if examples_per_s > 0 or len(chunk) >= CHUNK:
            log.append(chunk)
            chunk = []
        if examples_per_s > 0:
            stop.wait(0.5 / examples_per_s)  # an example and a label make two records
        if stop.is_set():
            return False
    log.append(chunk)
    return True


def unsent(log: Log, settings: Settings, *, flip_labels: bool = False) -> list[Outgoing]:
    """The stream's records that the topics do not hold yet, stamped from the time of the first run on.

    With `flip_labels` the second half of the pages has the opposite labels.
    """
    ends, pages = read_ends(log), read_pages()
    if flip_labels:
        half = len(pages) // 2
        pages = [*pages[:half], *flip(pages[half:])]
    stream = list(as_stream(pages, settings, log.partitions, OUTSTANDING, choose_partition))
    begun_ms = _begin_ms(log, stream, resumed=ends["examples", 0] > 0)
    return [
        Outgoing(one.topic, one.partition, one.key, one.value, (), begun_ms + SPACING_MS * one.timestamp_ms)
        for one in stream
        if one.offset >= ends[one.topic, one.partition]
    ]


def _begin_ms(log: Log, stream: list[Record], *, resumed: bool) -> int:
    """When the stream began: as its first record says, or so that it ends now."""
    first = next(iter(log.read("examples", 0, 0)), None) if resumed else None
    if first is None:
        return round(time.time() * 1000) - SPACING_MS * len(stream)
    return first.timestamp_ms - SPACING_MS * stream[0].timestamp_ms
