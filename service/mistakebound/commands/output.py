"""Data goes to stdout, messages to stderr. Plain text always: it reads the same in a file and on a screen."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_message(text: str) -> None:
    """Tell the user something that is not the answer."""
    print(text, file=sys.stderr, flush=True)


def as_json(value: Any) -> None:
    """Print JSON: keys in the given order, text as it is."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns as wide as their content, two spaces apart; the last is never padded."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heads))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines)
