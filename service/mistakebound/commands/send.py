"""`send`: messages from a file, or a recording's inputs, into the log."""

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, LogUrl, Sets, opened, settings_of
from mistakebound.commands.output import message

if TYPE_CHECKING:
    from mistakebound.core.records import Outgoing, Record, Topic
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

BOTH = "inputs"


def send(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="examples or labels; `inputs` for both, of a recording.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON Lines or a recording; - is stdin.")],
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Send messages, or a recording's inputs.

    Messages come as one JSON object a line; a message's key is its id. A recording keeps keys, values,
    headers and record times; partitions too, where the log has as many.
    """
    from mistakebound.core.records import INPUTS

    if topic not in (*INPUTS, BOTH):
        choices = ", ".join((*INPUTS, BOTH))
        raise CommandError(ExitCode.USAGE, f"cannot send to {topic!r}: choose one of {choices}")
    settings = settings_of(config, sets, log)
    with _source(file) as lines, opened(settings) as reached:
        first = lines.readline()
        whole = itertools.chain([first] if first else [], lines)
        if first.startswith(b"{") and b'"mistakebound-recording"' in first[:200]:
            wanted = INPUTS if topic == BOTH else tuple(one for one in INPUTS if one == topic)
            outgoing = _recorded(reached, whole, wanted)
        else:
            chosen = next((one for one in INPUTS if one == topic), None)
            if chosen is None:
                raise CommandError(
                    ExitCode.USAGE, f"{file} is no recording: name the topic, examples or labels"
                )
            outgoing = _messages(settings, chosen, whole)
        good = UntilWrong(outgoing)
        message(f"sent {reached.append(good)} records")
    if good.wrong is not None:
        raise good.wrong


class UntilWrong:
    """Ends before the first wrong line instead of raising, so that all before it is sent for sure."""

    def __init__(self, outgoing: "Iterator[Outgoing]") -> None:
        self._outgoing = outgoing
        self.wrong: Exception | None = None

    def __iter__(self) -> "Iterator[Outgoing]":
        from mistakebound.core.replay.recording import RecordingError

        try:
            yield from self._outgoing
        except (CommandError, RecordingError) as error:
            self.wrong = error


def _messages(settings: "Settings", topic: "Topic", lines: Iterable[bytes]) -> "Iterator[Outgoing]":
    """Each line as it is, under its id. Raises CommandError at a line without an id."""
    from mistakebound.commands.message_key import key_of
    from mistakebound.core.records import Outgoing

    for number, line in enumerate(lines, start=1):
        value = line.rstrip(b"\r\n")
        if value.strip():
            yield Outgoing(topic, -1, key_of(value, settings.messages.id, number), value)


def _recorded(log: "Log", lines: Iterable[bytes], topics: "tuple[Topic, ...]") -> "Iterator[Outgoing]":
    from mistakebound.core.records import Outgoing
    from mistakebound.core.replay.recording import begin

    header, records = begin(lines)
    same = header.partitions == log.partitions
    if not same:
        message(
            f"warning: the recording has {header.partitions} partitions, the log {log.partitions}: "
            "records go where their keys belong"
        )
    kept = _kept_since(log, topics)
    warned = False
    for record in records:
        if record.topic not in topics:
            continue
        if not warned and 0 <= record.timestamp_ms < kept.get(record.topic, 0):
            message(_vanishing(record))
            warned = True
        # A record without a time gets one from the log: there is none to keep.
        at = record.timestamp_ms if record.timestamp_ms >= 0 else None
        partition = record.partition if same else -1
        yield Outgoing(record.topic, partition, record.key, record.value, record.headers, at)


def _kept_since(log: "Log", topics: "tuple[Topic, ...]") -> "dict[Topic, int]":
    """Oldest record time in ms that each topic's retention keeps; nothing for those that keep all."""
    now = time.time_ns() // 1_000_000
    described = log.describe()
    kept: dict[Topic, int] = {}
    for topic in topics:
        found = described[topic]
        retention = found.config.get("retention.ms", "-1") if found is not None else "-1"
        if retention != "-1":
            kept[topic] = now - int(retention)
    return kept


def _vanishing(record: "Record") -> str:
    return (
        f"warning: {record.topic} records from offset {record.offset} on are older than the topic's "
        "retention.ms: the broker deletes them soon. Raise its retention.ms (-1: keep all) before sending"
    )


@contextmanager
def _source(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        lines = Path(file).open("rb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        raise CommandError(ExitCode.USAGE, f"{file} cannot be read: {error.strerror}") from None
    with lines:
        yield lines
