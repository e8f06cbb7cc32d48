"""Data goes to stdout, messages to stderr. Plain text, which reads the same in a file; a terminal may have colours too."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from mistakebound.worker.colours import Style, paint

_VERDICTS: dict[str, Style] = {"ok": "good", "valid": "good", "warning": "doubtful", "failed": "bad"}
"""What a table's last column, or the first word of a message, may say of the rest."""


_ERASE = "\x1b[K"
_COLUMNS = 80
"""Of a terminal that does not know."""


def is_screen(stream: TextIO) -> bool:
    """Whether it is a terminal on which a line can be written anew."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def rewrite(text: str) -> None:
    """Write the terminal's last line anew, without ending it: the next message takes its place."""
    width = os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    sys.stderr.write(f"\r{_ERASE}{text[: width - 1]}\r")
    sys.stderr.flush()


def _print_line(text: str) -> None:
    erase = _ERASE if is_screen(sys.stderr) else ""
    print(f"{erase}{text}", file=sys.stderr, flush=True)


def print_message(text: str) -> None:
    """Tell the user what is not part of the answer."""
    verdict, colon, rest = text.partition(":")
    if verdict in _VERDICTS:
        text = paint(verdict + colon, _VERDICTS[verdict], sys.stderr) + rest
    _print_line(text)


def print_error(text: str) -> None:
    """Tell the user why a command ends without what it was asked for."""
    _print_line(paint(text, "bad", sys.stderr))


def print_json(value: Any) -> None:
    """Print JSON: keys in the given order, text as it is."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_form(value: Any) -> None:
    """Print what is made of the classes of `json_forms`, as JSON."""
    from msgspec import to_builtins

    print_json(to_builtins(value))


def number_of(count: int, noun: str) -> str:
    """A number and what it counts: `1 record`, `2 records`. For nouns with the plural in -s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def render_rate(rate: float | None) -> str:
    """Four decimals; a dash where nothing was counted."""
    return "-" if rate is None else f"{rate:.4f}"


def render_table(*rows: Sequence[Any]) -> str:
    """For stdout: columns as wide as their content, two spaces apart; the last is never padded."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:<{width}}}" for width in widths)
    lines = [form.format(*row).rstrip() for row in cells]
    return "\n".join(map(_judged, lines, (row[-1] for row in cells)))


def _judged(line: str, verdict: str) -> str:
    """The line, its last cell in the colour of its verdict."""
    if verdict not in _VERDICTS:
        return line
    return line.removesuffix(verdict) + paint(verdict, _VERDICTS[verdict], sys.stdout)
