"""`send`: messages from a file, or a recording's inputs, into the log."""

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.meter import Meter
from mistakebound.commands.options import Config, LogUrl, Sets, choose_topic, open_log, read_settings
from mistakebound.commands.output import number_of, print_message

if TYPE_CHECKING:
    from mistakebound.commands.destinations import MessageDestination, RecordingDestination
    from mistakebound.core.records import Outgoing, Record, Topic
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

FIRST_RECORDS = 2_000
"""Of a recording: they tell how its keys were placed, and which topics it was made from."""
HEADERS_BYTES = 512
"""What a log's limit leaves for the frames of headers."""


def send(
    topic: Annotated[
        str,
        Argument(
            metavar="TOPIC",
            help="examples or labels, whatever the log calls them; `inputs` for both, from a recording.",
            autocompletion=lambda: ["examples", "labels", "inputs"],
        ),
    ],
    file: Annotated[
        str, Argument(metavar="FILE|-", help="JSON Lines, a recording, or what kcat -J prints; - is stdin.")
    ],
    partitioner: Annotated[
        Literal["murmur2", "crc32", "fnv1a", "modulo"] | None,
        Option(
            "--partitioner",
            help="How the stream's producers place keys; by default the records that are there tell.",
        ),
    ] = None,
    rekey: Annotated[
        bool, Option("--rekey", help="A recording: give each record its id as key, and place it by that.")
    ] = False,
    yes: Annotated[
        bool,
        Option(
            "--yes",
            help="Send even to another worker's live inputs, or to the topics that a recording is of.",
        ),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Send messages, or a recording's inputs.

    Messages are one JSON object a line; a message's key is its id, and goes to the partition where the topics'
    own producers put it. A recording keeps its keys, values, headers and record times, and its partitions where
    the log has as many. Where it cannot be told where records belong, nothing is sent.
    """
    from mistakebound.commands.destinations import for_messages, for_recording, refuse_live
    from mistakebound.commands.input_files import is_recording, open_input
    from mistakebound.commands.input_lines import (
        Numbered,
        first_then_all,
        interrupted,
        interruptible,
        read_lines,
    )
    from mistakebound.commands.recordings import begun
    from mistakebound.core.replay.kcat import is_kcat
    from mistakebound.log.protocol import LogError

    settings = read_settings(config, sets, log)
    topics = _topics(topic, settings)
    if file == "-" and sys.stdin is None:
        raise CommandError("stdin is closed: name a file, or connect stdin")
    with (
        open_input(file) as opened,
        open_log(settings) as reached,
        interruptible() as interruption,
        ExitStack() as held,
    ):
        first, lines = first_then_all(read_lines(file, opened, interruption))
        records: Iterator[tuple[int, Outgoing]]
        if is_recording(first) or is_kcat(first):
            header, recorded = held.enter_context(begun(lines, settings))
            wanted = _only(topics, recorded, 2 if is_recording(first) else 1)
            sampled, wanted = _sampled(wanted)
            heads = [record for _, record in sampled]
            if not yes:
                refuse_live(reached, settings, topics, heads)
            place = for_recording(reached, settings, header.partitions, heads, topics, partitioner, rekey)
            records = _from_recording(reached, topics, wanted, place)
            where = place.told
        elif topic == "inputs":
            raise CommandError(f"{file} is not a recording: name the topic, examples or labels")
        elif rekey:
            raise CommandError(f"{file} is not a recording: messages have their ids as keys already")
        else:
            if not yes:
                refuse_live(reached, settings, topics)
            destination = for_messages(reached, settings, topics[0], partitioner)
            records = _from_messages(settings, topics[0], lines, destination)
            where = destination.told
        names = " and ".join(settings.topic_name(each) for each in topics)
        print_message(f"sending to {names}, {where}")
        if interruption.came:
            raise interrupted("interrupted before the first record: nothing was sent")
        numbered = Numbered(held.enter_context(Meter()).counted(_within_limits(reached, records), "sending"))
        try:
            count = reached.append(numbered)
        except LogError as error:
            print_message(_sent_before(error.acknowledged, numbered.line_of(error.acknowledged)))
            raise
        print_message(f"sent {number_of(count, 'record')}")
    if numbered.wrong is not None:
        raise numbered.wrong
    if interruption.came:
        raise interrupted(
            f"interrupted after {_line(numbered.line_of(count - 1))}: send the rest from there on"
        )


def _topics(named: str, settings: "Settings") -> "tuple[Topic, ...]":
    """One input, or both. Raises CommandError."""
    from mistakebound.core.records import INPUTS

    chosen = choose_topic("TOPIC", named, (*INPUTS, "inputs"), settings)
    return tuple(one for one in INPUTS if chosen in (one, "inputs"))


def _sent_before(count: int, line: int | None) -> str:
    """What is in the log for certain when it fails."""
    return (
        f"sent {number_of(count, 'record')}; that of {_line(line)} failed, and of those after it the log may hold some. "
        "Send the file again from there on: what is there already counts as a duplicate"
    )


def _line(number: int | None) -> str:
    return "the first line" if number is None else f"line {number}"


def _within_limits(log: "Log", records: "Iterable[tuple[int, Outgoing]]") -> "Iterator[tuple[int, Outgoing]]":
    """Raises CommandError at a record that its topic does not take, where the log tells what that is."""
    from mistakebound.log.protocol import Refused

    limits: dict[Topic, int | None] = {}
    for line, record in records:
        if record.topic not in limits:
            try:
                limits[record.topic] = log.max_record_bytes(record.topic)
            except Refused:  # not for us to know: the log will refuse what is too large
                limits[record.topic] = None
        limit = limits[record.topic]  # for many headers; what is near it, the log itself will judge
        size = len(record.value or b"") + len(record.key or b"")
        size += sum(len(name.encode()) + len(content or b"") for name, content in record.headers)
        if limit is not None and size > limit + HEADERS_BYTES:
            raise CommandError(
                f"line {line}: a record of {size:,} bytes, and {record.topic} takes {limit:,}. Shorten it, or raise "
                "the topic's max.message.bytes and kafka.max_request_size"
            )
        yield line, record


def _from_messages(
    settings: "Settings", topic: "Topic", lines: Iterable[bytes], destination: "MessageDestination"
) -> "Iterator[tuple[int, Outgoing]]":
    """Each line as it is, under its id. Raises CommandError at a line that the worker could not join."""
    for number, line in enumerate(lines, start=1):
        value = line.rstrip(b"\r\n")
        if not value.strip():
            continue
        record_id = _id(number, value, settings.messages.id)
        outgoing = destination.outgoing(topic, record_id, value)
        if outgoing is None:
            raise CommandError(
                f"line {number}: id {record_id!r} is no number, and keys are placed {destination.why}. "
                "Correct the id, or name another --partitioner"
            )
        yield number, outgoing


def _id(number: int, value: bytes, pointer: str) -> str:
    """As the worker reads it. Raises CommandError."""
    import msgspec

    from mistakebound.core.messages.inputs import ID_BYTES, resolve

    try:
        found: Any = resolve(msgspec.json.decode(value), pointer)
        text = str(found) if type(found) in (int, str) else ""
        size = len(text.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CommandError(
            f"line {number}: not JSON: {error}. Write one JSON object a line, in UTF-8"
        ) from None
    wrong = ""
    if found is None:
        wrong = f"no id at messages.id = {pointer}"
    elif not text:
        wrong = "an empty id" if found == "" else f"the id is {_spoken(found)}"
    elif size > ID_BYTES:
        wrong = f"an id of {size} bytes, and at most {ID_BYTES} are allowed"
    if not wrong:
        return text
    raise CommandError(
        f"line {number}: {wrong}. An id is a string or an integer; messages.id says where it is"
    )


def _spoken(found: object) -> str:
    """Without what is inside, which may be as deep as it likes."""
    if isinstance(found, list | dict):
        return "an array" if isinstance(found, list) else "an object"
    return {True: "true", False: "false"}[found] if isinstance(found, bool) else str(found)


def _only(
    topics: "tuple[Topic, ...]", records: "Iterable[Record]", first_line: int
) -> "Iterator[tuple[int, Record]]":
    """Records of these topics, with the line of each."""
    return ((line, record) for line, record in enumerate(records, first_line) if record.topic in topics)


def _sampled(
    records: "Iterator[tuple[int, Record]]",
) -> "tuple[list[tuple[int, Record]], Iterator[tuple[int, Record]]]":
    """The first records, and all of them. A wrong line among them is told when it is reached again."""
    from mistakebound.core.replay.recording import RecordingError

    first: list[tuple[int, Record]] = []
    rest: Iterator[tuple[int, Record]] = records
    try:
        for each in itertools.islice(records, FIRST_RECORDS):
            first.append(each)
    except (CommandError, RecordingError) as error:
        rest = _raising(error)
    return first, itertools.chain(first, rest)


def _raising(error: Exception) -> "Iterator[tuple[int, Record]]":
    raise error
    yield


def _from_recording(
    log: "Log",
    topics: "tuple[Topic, ...]",
    records: "Iterable[tuple[int, Record]]",
    destination: "RecordingDestination",
) -> "Iterator[tuple[int, Outgoing]]":
    kept = _kept_since(log, topics)
    warned = False
    for line, record in records:
        if not warned and 0 <= record.timestamp_ms < kept.get(record.topic, 0):
            print_message(
                f"warning: {record.topic} records from offset {record.offset} on are older than the topic's "
                "retention.ms: the broker deletes them soon. Raise its retention.ms (-1: keep all) before sending"
            )
            warned = True
        yield line, destination.outgoing(record)


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
