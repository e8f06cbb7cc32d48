"""An input file, line by line, as something that may end at any moment: at a wrong line, or when the user has enough.

What was read before that is used, and the line is named.
"""

import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import FrameType
from typing import IO

from mistakebound.commands.errors import CommandError
from mistakebound.core.records import Outgoing
from mistakebound.core.replay.recording import RecordingError
from mistakebound.exit_codes import ExitCode

LONGEST_LINE = 64 * 1024 * 1024
"""In bytes; no broker takes such a record."""
_KEPT_LINES = 50_000
"""More records than any log has taken and not yet acknowledged."""
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class Interruption:
    """Whether the user has enough. While a line is awaited the interruption comes at once, else after the record at hand."""

    def __init__(self) -> None:
        self.came = False
        self.waiting = False

    def handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signals are handled
        """A signal came; a second one ends the process as it is."""
        again, self.came = self.came, True
        if again or self.waiting:
            self.waiting = False
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Hear SIGINT and SIGTERM until the end, in the thread that may."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {each: signal.signal(each, interruption.handle) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_lines(file: str, opened: IO[bytes], interruption: Interruption) -> Iterator[bytes]:
    """The lines, each with its end, without a byte order mark. Raises CommandError for what is no text file in UTF-8."""
    for number in _counted():
        if interruption.came:
            return
        try:
            interruption.waiting = True
            line = opened.readline(LONGEST_LINE + 1)
        except OSError as error:
            raise CommandError(f"{file} cannot be read after line {number - 1}: {error.strerror}") from None
        except KeyboardInterrupt:
            return
        finally:
            interruption.waiting = False
        if number == 1:
            if line.startswith(_UTF16):
                raise CommandError(f"line 1: {file} is UTF-16. Save it as UTF-8")
            line = line.removeprefix(_UTF8)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise CommandError(f"line {number}: longer than {LONGEST_LINE:,} bytes. Write one message a line")
        yield line


def _counted() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


class Numbered:
    """Records, with the line that each came from; ends before the first wrong line instead of raising, so that all
    before it is sent."""

    def __init__(self, outgoing: Iterable[tuple[int, Outgoing]]) -> None:
        self._outgoing = outgoing
        self._lines: deque[int] = deque(maxlen=_KEPT_LINES)
        self._given = 0
        self.wrong: Exception | None = None

    def __iter__(self) -> Iterator[Outgoing]:
        try:
            for line, record in self._outgoing:
                self._lines.append(line)
                self._given += 1
                yield record
        except (CommandError, RecordingError) as error:
            self.wrong = error

    def line_of(self, number: int) -> int | None:
        """The line of the n-th record, counted from 0; None where it was not read, or is long past."""
        index = number - (self._given - len(self._lines))
        return self._lines[index] if 0 <= index < len(self._lines) else None


def first_then_all(lines: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first line (empty without one), and all of them."""
    rest = iter(lines)
    first = next(rest, b"")
    return first, chain([first] if first else [], rest)


def interrupted(what: str) -> CommandError:
    """The end of a command whose user had enough."""
    return CommandError(what, ExitCode.INTERRUPTED)
