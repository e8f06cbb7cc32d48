"""`record`: write topics to a file that can be sent again, replayed, and compared byte for byte."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.meter import Meter
from mistakebound.commands.options import Config, LogUrl, Sets, choose_topic, open_log, read_settings
from mistakebound.commands.output import number_of, print_message


def record(
    file: Annotated[str, Argument(metavar="FILE|-", help="Where to write; - is stdout.")],
    topics: Annotated[
        list[str] | None,
        Option(
            "--topics", metavar="NAMES", help="Logical names, such as examples,labels; default all topics."
        ),
    ] = None,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Write what the log holds to a file.

    Only committed records, in order of record time, up to where the topics end when it starts. The same log
    gives the same bytes. A file is written whole or not at all.
    """
    from mistakebound.commands.log_ranges import read_merged
    from mistakebound.core.records import TOPICS
    from mistakebound.core.replay.recording import encode, encode_header

    settings = read_settings(config, sets, log)
    names = [name.strip() for each in topics or () for name in each.split(",")]
    named = {choose_topic("--topics", name, TOPICS, settings) for name in names}
    wanted = [topic for topic in TOPICS if topics is None or topic in named]
    count = 0
    with open_log(settings) as reached, _open_output(file) as out, ExitStack() as held:
        out.write(encode_header(reached.partitions))
        total = 0

        def expect(offsets: int) -> None:
            nonlocal total
            total = offsets

        records = held.enter_context(Meter()).counted(
            read_merged(reached, wanted, expect), "reading", lambda: total
        )
        for count, one in enumerate(records, 1):  # noqa: B007 - printed below
            out.write(encode(one))
    print_message(f"{number_of(count, 'record')} of {', '.join(wanted)}")


@contextmanager
def _open_output(file: str) -> Iterator[IO[bytes]]:
    """stdout, or a new file beside the named one, which it replaces when all went well."""
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
