"""Files that a verb is given to read, `-` for stdin. Raises CommandError for a bad file.

They are read in blocks, as often as a verb needs, and never held in memory. What cannot be read twice (a pipe) is
copied to a temporary file first.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

from typer import Option

from mistakebound.commands.errors import CommandError

Form = Literal["recording", "csv", "svmlight", "jsonl"]
FormOption = Annotated[
    Form | None, Option("--from", help="What the file holds; by default its content or name tells.")
]
_ENDINGS: dict[str, Form] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_FIRST_BLOCK_BYTES = 4_096
"""Small, for where only one line is wanted; later blocks are twice as large, up to the next number."""
_BLOCK_BYTES = 262_144
LINE_BYTES = 16_777_216
"""Longer lines are refused: no record on a log is that large, but a file that is no text may have such a line."""
_BOM = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"\x1f\x8b": "it is compressed with gzip; unpack it first: gunzip -c FILE | mistakebound ... - --from FORM",
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd; unpack it first: zstdcat FILE | mistakebound ... - --from FORM",
    b"PK\x03\x04": "it is a zip archive, or a spreadsheet; save it as CSV in UTF-8",
    b"PAR1": "it is Parquet; write it as CSV or JSON Lines",
    b"\xff\xfe": "it is UTF-16; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16; save it as UTF-8",
}
"""Beginnings of files that are no text in UTF-8, and what to do about them."""


@contextmanager
def open_input(file: str) -> Iterator[IO[bytes]]:
    """Open the file, to be read by lines."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        lines = Path(file).open("rb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from None
    with lines:
        yield lines


class InputFile:
    """A file in which any place can be read again. Its byte order mark is no part of it."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name, self._file = name, file
        self._start = file.tell()
        beginning = self.beginning()
        for magic, remedy in _NOT_TEXT.items():
            if beginning.startswith(magic):
                raise CommandError(f"{name} cannot be read: {remedy}")
        if beginning.startswith(_BOM):
            self._start += len(_BOM)

    def beginning(self) -> bytes:
        """Enough of it to tell what it holds."""
        return self._read(self._start, 4_096)

    def lines(self, offset: int = 0) -> Iterator[bytes]:
        """The lines from a byte on, each with its end: LF, CR LF, or CR as old spreadsheets write it."""
        place, size, held, length = self._start + offset, _FIRST_BLOCK_BYTES, [b""], 0
        while block := self._read(place, size):
            place += len(block)
            size = min(2 * size, _BLOCK_BYTES)
            length += len(block)
            # The last line may go on, and a CR at the end may be half of a CR LF.
            if b"\n" in block or b"\r" in block or held[-1].endswith(b"\r"):
                whole = b"".join((*held, block)).splitlines(keepends=True)
                held = [b"" if whole[-1].endswith(b"\n") else whole.pop()]
                length = len(held[0])
                yield from whole
            else:
                held.append(block)
            if length > LINE_BYTES:
                what = f"has a line of more than {LINE_BYTES} bytes; is it the text file you meant?"
                raise CommandError(f"{self.name} {what}")
        if rest := b"".join(held):
            yield rest

    def _read(self, place: int, size: int) -> bytes:
        try:
            self._file.seek(place)
            return self._file.read(size)
        except OSError as error:
            raise CommandError(f"{self.name} cannot be read: {error.strerror}") from None


@contextmanager
def open_input_file(file: str) -> Iterator[InputFile]:
    """The file, or stdin, to be read as often as is needed."""
    with open_input(file) as given:
        if given.seekable():
            yield InputFile(file, given)
            return
        with spooled(iter(lambda: given.read(_BLOCK_BYTES), b"")) as copy:
            yield InputFile(file, copy)


@contextmanager
def spooled(blocks: Iterable[bytes]) -> Iterator[IO[bytes]]:
    """What can be read only once, in a temporary file."""
    with tempfile.TemporaryFile(prefix="mistakebound-", dir=temporary_folder()) as copy:
        try:
            for block in blocks:
                copy.write(block)
            copy.seek(0)
        except OSError as error:
            free = shutil.disk_usage(tempfile.gettempdir()).free
            what = f"cannot be copied to {tempfile.gettempdir()}, where {free} bytes are free"
            raise CommandError(f"the input {what}: {error.strerror}; TMPDIR names another folder") from None
        yield copy


def temporary_folder() -> Path:
    """Where temporary files go. Raises CommandError where no such folder can be written to: a container's root may be read-only."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        what = "the input must be copied to a temporary file, and no folder for those can be written to"
        raise CommandError(f"{what}; TMPDIR names another") from None


def is_recording(beginning: bytes) -> bool:
    """Whether a file with this beginning was made by `record`."""
    return beginning.lstrip().startswith(b"{") and b'"mistakebound-recording"' in beginning[:200]


def choose_form(file: InputFile, form: Form | None) -> Form:
    """The form that was asked for, else the one that content or name tells."""
    from mistakebound.core.replay.kcat import is_kcat

    beginning = file.beginning()
    by_content: Form | None = "recording" if is_recording(beginning) or is_kcat(beginning) else None
    found = form or by_content or _ENDINGS.get(Path(file.name).suffix.lower())
    if found is None:
        raise CommandError(f"cannot tell what {file.name} holds; add --from recording|csv|svmlight|jsonl")
    return found
