"""Recordings of topics: those of `record`, and what `kcat -J` prints."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from mistakebound.commands.input_files import InputFile, spooled
from mistakebound.core.records import TOPICS, Record
from mistakebound.core.replay import kcat
from mistakebound.core.replay.recording import Header, begin
from mistakebound.settings import Settings


class RecordingFile:
    """A recording that can be read as often as is needed."""

    def __init__(self, file: InputFile, settings: Settings) -> None:
        self._file, self._settings = file, settings

    def begin(self) -> tuple[Header, Iterator[Record]]:
        """The header at once, and the records lazily. Raises RecordingError, CommandError."""
        if not kcat.is_kcat(self._file.beginning()):
            return begin(self._file.lines())
        topics = {self._settings.topic_name(topic): topic for topic in TOPICS}
        return kcat.begin(self._file.lines, topics, self._settings.log.partitions or 1)


@contextmanager
def begun(lines: Iterable[bytes], settings: Settings) -> Iterator[tuple[Header, Iterator[Record]]]:
    """A recording whose lines can be read only once. kcat's are copied to a temporary file, for they have no header."""
    rest = iter(lines)
    first = next(rest, b"")
    whole = chain([first] if first else [], rest)
    if not kcat.is_kcat(first):
        yield begin(whole)
        return
    with spooled(whole) as copy:
        yield RecordingFile(InputFile("-", copy), settings).begin()
