"""`send`: messages from a file, or a recording's inputs, into the log."""

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, LogUrl, Sets, open_log, read_settings
from mistakebound.commands.output import print_message

if TYPE_CHECKING:
    from mistakebound.core.records import Outgoing, Record, Topic
    from mistakebound.core.replay.recording import Header
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings


def send(
    topic: Annotated[
        Literal["examples", "labels", "inputs"],
        Argument(metavar="TOPIC", help="examples or labels; `inputs` for both, from a recording."),
    ],
    file: Annotated[
        str, Argument(metavar="FILE|-", help="JSON Lines, a recording, or what kcat -J prints; - is stdin.")
    ],
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Send messages, or a recording's inputs.

    Messages are one JSON object a line; a message's key is its id. A recording keeps its keys, values,
    headers and record times, and its partitions where the log has as many.
    """
    from mistakebound.commands.input_files import is_recording, open_input
    from mistakebound.commands.recordings import begun
    from mistakebound.core.records import INPUTS
    from mistakebound.core.replay.kcat import is_kcat

    topics = tuple(one for one in INPUTS if topic in (one, "inputs"))
    settings = read_settings(config, sets, log)
    with open_input(file) as lines, open_log(settings) as reached, ExitStack() as held:
        first = lines.readline()
        whole = itertools.chain([first] if first else [], lines)
        if is_recording(first) or is_kcat(first):
            outgoing = _from_recording(reached, held.enter_context(begun(whole, settings)), topics)
        elif topic == "inputs":
            raise CommandError(f"{file} is not a recording: name the topic, examples or labels")
        else:
            outgoing = _from_messages(settings, topics[0], whole)
        good = _UntilWrong(outgoing)
        print_message(f"sent {reached.append(good)} records")
    if good.wrong is not None:
        raise good.wrong


class _UntilWrong:
    """Ends before the first wrong line instead of raising, so that all before it is sent."""

    def __init__(self, outgoing: "Iterator[Outgoing]") -> None:
        self._outgoing = outgoing
        self.wrong: Exception | None = None

    def __iter__(self) -> "Iterator[Outgoing]":
        from mistakebound.core.replay.recording import RecordingError

        try:
            yield from self._outgoing
        except (CommandError, RecordingError) as error:
            self.wrong = error


def _from_messages(settings: "Settings", topic: "Topic", lines: Iterable[bytes]) -> "Iterator[Outgoing]":
    """Each line as it is, under its id. Raises CommandError at a line without an id."""
    from mistakebound.core.messages.inputs import resolve
    from mistakebound.core.records import Outgoing

    pointer = settings.messages.id
    for number, line in enumerate(lines, start=1):
        value = line.rstrip(b"\r\n")
        if not value.strip():
            continue
        try:
            found = resolve(json.loads(value), pointer)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"line {number}: not JSON: {error}. Write one JSON object a line") from None
        if type(found) not in (int, str) or found == "":
            wrong = (
                f"no id at messages.id = {pointer}"
                if found is None
                else f"id = {json.dumps(found)} is not an id"
            )
            raise CommandError(
                f"line {number}: {wrong}. An id is a string or an integer; messages.id says where it is"
            )
        yield Outgoing(topic, -1, str(found).encode("utf-8"), value)


def _from_recording(
    log: "Log", recording: "tuple[Header, Iterator[Record]]", topics: "tuple[Topic, ...]"
) -> "Iterator[Outgoing]":
    from mistakebound.core.records import Outgoing

    header, records = recording
    same = header.partitions == log.partitions
    if not same:
        print_message(
            f"warning: the recording has {header.partitions} partitions, the log {log.partitions}: "
            "records go where their keys belong"
        )
    kept = _kept_since(log, topics)
    warned = False
    for record in (one for one in records if one.topic in topics):
        if not warned and 0 <= record.timestamp_ms < kept.get(record.topic, 0):
            print_message(
                f"warning: {record.topic} records from offset {record.offset} on are older than the topic's "
                "retention.ms: the broker deletes them soon. Raise its retention.ms (-1: keep all) before sending"
            )
            warned = True
        # A record without a time has none to keep: the log stamps it.
        at = record.timestamp_ms if record.timestamp_ms >= 0 else None
        partition = record.partition if same else -1
        yield Outgoing(record.topic, partition, record.key, record.value, record.headers, at)


def _kept_since(log: "Log", topics: "tuple[Topic, ...]") -> "dict[Topic, int]":
    """The oldest record time in ms that each topic's retention keeps; topics that keep all are left out."""
    now = time.time_ns() // 1_000_000
    described = log.describe()
    kept: dict[Topic, int] = {}
    for topic in topics:
        found = described[topic]
        retention = found.config.get("retention.ms", "-1") if found is not None else "-1"
        if retention != "-1":
            kept[topic] = now - int(retention)
    return kept
