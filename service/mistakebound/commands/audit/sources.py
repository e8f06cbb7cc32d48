"""Where an audit reads from: a log, or a recording split into its topics' partitions."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from mistakebound.commands.input_files import open_input, temporary_folder
from mistakebound.commands.log_ranges import read_range, readable_end
from mistakebound.core.records import TOPICS, Position, Record, Topic
from mistakebound.core.replay import recording
from mistakebound.log.protocol import Log, Refused


class LogSource:
    """A log's committed records."""

    def __init__(self, log: Log) -> None:
        """Raises Refused where a topic's first records, without which nothing can be derived, were deleted."""
        self._log, self.partitions = log, log.partitions
        for topic in TOPICS:
            for p in range(self.partitions):
                if topic != "dead-letters" and self.begins_late(topic, p):
                    raise Refused(
                        f"{topic}-{p} starts at offset {log.low_watermark(topic, p)}: an audit needs every record "
                        "from the beginning. Audit a recording made before they were deleted (`mistakebound record`)"
                    )

    def read(self, topic: Topic, partition: int) -> Iterator[Record]:
        """`outcomes` up to their end at the start; other topics on to the end they have once that is reached."""
        start = self._log.low_watermark(topic, partition)
        stop = readable_end(self._log, topic, partition)
        while start < stop:
            yield from read_range(self._log, topic, partition, start, stop)
            start = stop
            if topic != "outcomes":
                stop = readable_end(self._log, topic, partition)

    def begins_late(self, topic: Topic, partition: int) -> bool:
        """Whether its first records were deleted."""
        return self._log.low_watermark(topic, partition) > 0

    def goes_on(self, partition: int, after: int) -> bool:
        """Whether there are later `outcomes` by now."""
        return next(iter(self._log.read("outcomes", partition, after + 1)), None) is not None

    def positions(self) -> Mapping[int, Position | None]:
        """The group's; none where its positions may not be read."""
        try:
            return self._log.group_positions()
        except Refused:
            return {}

    def end(self, partition: int) -> int:
        """About where `outcomes` of the partition ends."""
        return self._log.high_watermark("outcomes", partition)


class RecordingSource:
    """A recording, copied to one temporary file for each topic and partition."""

    def __init__(self, folder: Path, partitions: int, ends: Mapping[int, int]) -> None:
        self._folder, self.partitions, self._ends = folder, partitions, ends

    def read(self, topic: Topic, partition: int) -> Iterator[Record]:
        """From the partition's own file."""
        if (path := _file_of(self._folder, topic, partition)).exists():
            with path.open("rb") as lines:
                yield from recording.decode(lines)

    def begins_late(self, topic: Topic, partition: int) -> bool:  # noqa: ARG002
        """A recording does not say."""
        return False

    def goes_on(self, partition: int, after: int) -> bool:  # noqa: ARG002
        """A recording is at its end."""
        return False

    def positions(self) -> Mapping[int, Position | None]:
        """A recording holds none."""
        return {}

    def end(self, partition: int) -> int:
        """Where `outcomes` of the partition ends."""
        return self._ends.get(partition, 0)


@contextmanager
def open_recording(file: str) -> Iterator[RecordingSource]:
    """The recording in a file, or on stdin. Raises RecordingError, CommandError."""
    with (
        tempfile.TemporaryDirectory(prefix="mistakebound-audit-", dir=temporary_folder()) as name,
        open_input(file) as lines,
    ):
        folder = Path(name)
        yield RecordingSource(folder, *_split(lines, folder))


def _split(lines: IO[bytes], folder: Path) -> tuple[int, dict[int, int]]:
    """Returns the partition count, and the ends of `outcomes`."""
    ends: dict[int, int] = {}
    header, records = recording.begin(lines)
    with ExitStack() as held:
        files: dict[tuple[Topic, int], IO[bytes]] = {}
        for record in records:
            topic_partition = (record.topic, record.partition)
            if topic_partition not in files:
                files[topic_partition] = held.enter_context(_file_of(folder, *topic_partition).open("wb"))
                files[topic_partition].write(recording.encode_header(header.partitions))
            files[topic_partition].write(recording.encode(record))
            if record.topic == "outcomes":
                ends[record.partition] = record.offset + 1
    return header.partitions, ends


def _file_of(folder: Path, topic: Topic, partition: int) -> Path:
    return folder / f"{topic}-{partition}"
