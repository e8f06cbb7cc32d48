"""Files that a verb is given to read, `-` for stdin, and what they hold. Raises CommandError for a bad file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

from typer import Option

from mistakebound.commands.errors import CommandError

Form = Literal["recording", "csv", "svmlight", "jsonl"]
FormOption = Annotated[
    Form | None, Option("--from", help="What the file holds; by default its content or name tells.")
]
_ENDINGS: dict[str, Form] = {".csv": "csv", ".svm": "svmlight", ".svmlight": "svmlight", ".jsonl": "jsonl"}


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


def read_input(file: str) -> bytes:
    """The whole file."""
    with open_input(file) as lines:
        try:
            return lines.read()
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from None


def is_recording(beginning: bytes) -> bool:
    """Whether a file with this beginning was made by `record`."""
    return beginning.lstrip().startswith(b"{") and b'"mistakebound-recording"' in beginning[:200]


def choose_form(file: str, form: Form | None, content: bytes) -> Form:
    """The form that was asked for, else the one that content or name tells."""
    found = form or ("recording" if is_recording(content) else _ENDINGS.get(Path(file).suffix))
    if found is None:
        raise CommandError(f"cannot tell what {file} holds; add --from recording|csv|svmlight|jsonl")
    return found
