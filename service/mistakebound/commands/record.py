"""`record`: topics to a file that can be sent again, replayed, and compared byte for byte."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, LogUrl, Sets, opened, settings_of
from mistakebound.commands.output import message

if TYPE_CHECKING:
    from mistakebound.core.records import Record, Topic
    from mistakebound.log.protocol import Log

CHUNK_OFFSETS = 2_000
"""WorkerState in memory for each partition of each topic."""


def record(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to write; - is stdout.")],
    topics: Annotated[
        list[str] | None, typer.Option("--topics", metavar="NAMES", help="Logical names; default all topics.")
    ] = None,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Write what the log holds to a file.

    Committed records only, in record-time order, up to the ends at the start. The same log gives the
    same bytes. A file is written whole or not at all.
    """
    from mistakebound.commands.recorded import ordered
    from mistakebound.core.replay.recording import encode, encode_header

    wanted = _topics(topics)
    settings = settings_of(config, sets, log)
    count = 0
    with opened(settings) as reached, _destination(file) as out:
        partitions = reached.partitions
        out.write(encode_header(partitions))
        for one in ordered(_sides(reached, wanted, partitions)):
            out.write(encode(one))
            count += 1
    message(f"{count} records of {', '.join(wanted)}")


def _sides(log: "Log", topics: "tuple[Topic, ...]", partitions: int) -> "list[Iterator[Record]]":
    """A reader for each topic and partition; all ends are taken before the first record is read."""
    ends = [
        (topic, partition, log.low_watermark(topic, partition), log.high_watermark(topic, partition))
        for topic in topics
        for partition in range(partitions)
    ]
    return [_chunks(log, *end) for end in ends]


def _chunks(log: "Log", topic: "Topic", partition: int, low: int, high: int) -> "Iterator[Record]":
    """Read in short ranges, each to its end, so that one connection serves all sides of the merge."""
    for start in range(low, high, CHUNK_OFFSETS):
        yield from list(log.read(topic, partition, start, min(start + CHUNK_OFFSETS, high)))


def _topics(names: list[str] | None) -> "tuple[Topic, ...]":
    from mistakebound.core.records import TOPICS

    if names is None:
        return TOPICS
    asked = [name.strip() for item in names for name in item.split(",")]
    unknown = [name for name in asked if name not in TOPICS]
    if unknown:
        raise CommandError(ExitCode.USAGE, f"no topic {unknown[0]!r}: choose of {', '.join(TOPICS)}")
    return tuple(topic for topic in TOPICS if topic in asked)


@contextmanager
def _destination(file: str) -> Iterator[IO[bytes]]:
    """stdout, or a new file beside the named one that takes its place when all went well."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    partial = path.with_name(path.name + ".partial")
    try:
        try:
            with partial.open("wb") as out:
                yield out
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        if error.filename is None:
            raise
        raise CommandError(ExitCode.USAGE, f"{file} cannot be written: {error.strerror}") from None
