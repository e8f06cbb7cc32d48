"""Lines of a file as text, with their numbers and places."""

from collections.abc import Iterator

from mistakebound.commands.errors import CommandError


def wrong_line(line: int, what: str, remedy: str) -> CommandError:
    """An error that names the line and says what to do."""
    return CommandError(f"line {line}: {what}; {remedy}")


class TextLines:
    """Gives line after line, in UTF-8. Raises CommandError, naming the line."""

    def __init__(self, lines: Iterator[bytes], number: int = 0, end: int = 0) -> None:
        """Begin after line `number`, which ends before byte `end`."""
        self._lines = lines
        self.number, self.end = number, end
        self.row_offset = end
        """Where the newest row begins."""

    def begin_row(self) -> int:
        """The next row begins here: returns the number of its line."""
        self.row_offset = self.end
        return self.number + 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.end += len(line)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            what = f"it is not UTF-8 at its byte {error.start + 1} (0x{line[error.start]:02x})"
            raise wrong_line(self.number, what, "save the file as UTF-8") from None
