"""`replay --judged`: each judged prediction in a file, for `compare`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mistakebound.commands.errors import CommandError
from mistakebound.core.comparison.judged import encode, encode_header, judged_outcomes
from mistakebound.core.records import Record
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings


class JudgedFile:
    """An open file, shown every step of a replay."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def begin(self, settings: Settings) -> None:
        """Write the header: what the replay learns with."""
        self._file.write(encode_header(dict(settings.of_epoch())))

    def see(self, step: Step) -> None:
        """Write what this step judged."""
        outcomes = (
            Record(one.topic, one.partition, 0, 0, one.key, one.value)
            for one in step.transaction.outputs
            if one.topic == "outcomes"
        )
        for one in judged_outcomes(outcomes):
            self._file.write(encode(one))


@contextmanager
def open_judged(file: str | None) -> Iterator[JudgedFile | None]:
    """None where no file was asked for. Raises CommandError."""
    if file is None:
        yield None
        return
    try:
        opened = Path(file).open("wb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        raise CommandError(f"--judged: {file} cannot be written: {error.strerror}") from None
    with opened:
        yield JudgedFile(opened)
