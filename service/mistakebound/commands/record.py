"""`record`: topics to a file that can be sent again, replayed, and compared byte for byte."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, LogUrl, Sets, open_log, read_settings
from mistakebound.commands.output import print_message

if TYPE_CHECKING:
    from mistakebound.core.records import Record, Topic
    from mistakebound.log.protocol import Log


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
    from mistakebound.commands.record_order import merge
    from mistakebound.core.replay.recording import encode, encode_header

    wanted = _choose_topics(topics)
    settings = read_settings(config, sets, log)
    count = 0
    with open_log(settings) as reached, _open_output(file) as out:
        partitions = reached.partitions
        out.write(encode_header(partitions))
        for one in merge(_readers(reached, wanted, partitions)):
            out.write(encode(one))
            count += 1
    print_message(f"{count} records of {', '.join(wanted)}")


def _choose_topics(names: list[str] | None) -> "tuple[Topic, ...]":
    from mistakebound.commands.choices import choose
    from mistakebound.core.records import TOPICS

    if names is None:
        return TOPICS
    asked = {choose("--topics", name.strip(), TOPICS) for item in names for name in item.split(",")}
    return tuple(topic for topic in TOPICS if topic in asked)


def _readers(log: "Log", topics: "tuple[Topic, ...]", partitions: int) -> "list[Iterator[Record]]":
    """A reader for each topic and partition; all ends are taken before the first record is read."""
    from mistakebound.commands.log_ranges import read_range

    return [
        read_range(log, topic, p, log.low_watermark(topic, p), log.high_watermark(topic, p))
        for topic in topics
        for p in range(partitions)
    ]


@contextmanager
def _open_output(file: str) -> Iterator[IO[bytes]]:
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
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
